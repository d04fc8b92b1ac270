def markdown(found): return ""
