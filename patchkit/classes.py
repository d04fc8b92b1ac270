"""What the text of a class or function says of it: decorators, properties, attributes that methods set, returns."""

from __future__ import annotations

import ast
from typing import TypeAlias

from patchkit.branches import walk
from patchkit.programs import Scope


def last_name(node: ast.expr) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def has_decorator(scope: Scope, name: str) -> bool:
    return any(last_name(each) == name for each in getattr(scope.node, "decorator_list", ()))


def is_property(scope: Scope) -> bool:
    """Whether reading the attribute calls this function."""
    decorators = getattr(scope.node, "decorator_list", ())
    return any("property" in last_name(each) or last_name(each) == "getter" for each in decorators)


def is_field(scope: Scope, annotation: ast.expr) -> bool:
    """Whether an annotated name of a class may get another value where an object is made, as that of a dataclass."""
    node = scope.node
    if not isinstance(node, ast.ClassDef) or not (node.decorator_list or node.bases or node.keywords):
        return False
    return last_name(annotation.value if isinstance(annotation, ast.Subscript) else annotation) != "ClassVar"


def first_parameter(scope: Scope) -> str:
    """The name of the first positional parameter of a function, "" where it has none."""
    arguments = getattr(scope.node, "args", None)
    positional = [*arguments.posonlyargs, *arguments.args] if isinstance(arguments, ast.arguments) else []
    return positional[0].arg if positional else ""


Attribute: TypeAlias = tuple[Scope, ast.expr | None, ast.expr | None]


def own_attributes(scope: Scope) -> dict[str, list[Attribute]]:
    """What the methods of a class assign to attributes of its instances: the method, the value, the annotation."""
    found: dict[str, list[Attribute]] = {}
    for method in scope.inner:
        node = method.node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        own = first_parameter(method)
        for placed in walk(node.body):
            statement = placed.node
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            for target in targets:
                match target:
                    case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == own:
                        value, annotation = getattr(statement, "value", None), getattr(statement, "annotation", None)
                        found.setdefault(attribute, []).append((method, value, annotation))
    return found


def return_values(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """The expressions that a function returns."""
    returns = (placed.node for placed in walk(node.body) if isinstance(placed.node, ast.Return))
    return [each.value for each in returns if each.value is not None]


def is_identity(scope: Scope) -> bool:
    """Whether a lambda gives back what it gets."""
    node = scope.node
    if not isinstance(node, ast.Lambda) or len(node.args.args) != 1:
        return False
    return isinstance(node.body, ast.Name) and node.body.id == node.args.args[0].arg


def is_nothing(node: ast.expr) -> bool:
    """Whether an expression is ``None``, which nobody calls."""
    return isinstance(node, ast.Constant) and node.value is None
