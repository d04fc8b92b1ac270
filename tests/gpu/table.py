def markdown(found):
    return ""
