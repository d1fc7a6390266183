"""Other spellings of an option."""

import tyro


def alias(*names: str):
    """A short form, such as -b."""
    return tyro.conf.arg(aliases=list(names))
