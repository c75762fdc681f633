"""Every public name of the package has a sentence."""

import inspect

import attmirror as am


def public_members(cls):
    """(name, thing) of what a class defines itself."""
    for name, thing in vars(cls).items():
        if not name.startswith("_") and (callable(thing) or isinstance(thing, (property, classmethod, staticmethod))):
            yield name, thing.__func__ if isinstance(thing, (classmethod, staticmethod)) else thing


def undocumented():
    for name in am.__all__:
        thing = getattr(am, name)
        if not (inspect.getdoc(thing) or "").strip():
            yield name
        if inspect.isclass(thing):
            # Members that take the text of a base class have it there.
            yield from (f"{name}.{member}" for member, value in public_members(thing)
                        if not (inspect.getdoc(value) or "").strip() and not getattr(thing.__mro__[1], member, None))


def test_every_public_name_has_a_docstring():
    assert list(undocumented()) == []


def test_the_check_sees_what_is_missing():
    class Bare:
        def method(self): ...

    assert [name for name, value in public_members(Bare) if not inspect.getdoc(value)] == ["method"]
