"""
Expressions and statements of a generated program: each is text of the language, and what Python makes of it.

An expression that is *strict* evaluates its parts from the left to the right and then itself, so that each part may as
well stand in a variable before it: that is the form "named".  A lazy one (&&, ?:) says itself what it evaluates.
"""
STR = "string"


class Expr:
    def __init__(self, type, make, fn, kids=(), lazy=False, literal=False, pure=None):
        self.type, self.make, self.fn, self.kids, self.lazy, self.literal = type, make, fn, list(kids), lazy, literal
        self.pure = all(kid.pure for kid in self.kids) if pure is None else pure
        self.constant = literal         # a constant of the language, or an operator on such

    def value(self, state):
        if self.lazy:
            return self.fn(state, *[lambda kid=kid: kid.value(state) for kid in self.kids])
        return self.fn(state, *[kid.value(state) for kid in self.kids])


class Form:
    """How a case is written; all forms of one print the same."""

    def __init__(self, named=False, constants=False, split=False, permute=None):
        self.named, self.constants, self.split, self.permute = named, constants, split, permute

    def __repr__(self):
        return ", ".join(name for name in ("named", "constants", "split", "permute") if getattr(self, name)) or "plain"


class Writer:
    """Writes expressions in one form; the language says how a variable is declared and assigned."""

    def __init__(self, language, form, case):
        self.language, self.form, self.case = language, form, case
        self.before = []                # statements that must stand before the one being written
        self.names = 0

    def fresh(self, type):
        self.names += 1
        return self.language.declare(self.case, f"h{self.case}_{self.names}", type)

    def expr(self, e, named=None):
        named = self.form.named if named is None else named
        if e.literal and self.form.constants:
            return self.language.constant(self.case, e)
        text = e.make(*[self.expr(kid, named and not e.lazy) for kid in e.kids])
        if not named or e.literal:
            return text
        name = self.fresh(e.type)
        self.before.append(self.language.assign(name, text))
        return name

    def statement(self, text):
        """@text with what must stand before it."""
        made = "".join(f"{line}\n" for line in [*self.before, text])
        self.before = []
        return made
