"""The errors that the library raises and the commands print."""


class RestoreError(Exception):
    """Something a user can act on; its message is one line."""

    exit_code = 1


class UsageError(RestoreError):
    """A wrong option or combination of options."""

    exit_code = 2


class InputError(RestoreError):
    """An input that cannot be read."""

    exit_code = 3


class OutputError(RestoreError):
    """An output that cannot be written."""

    exit_code = 4


class WeightsError(RestoreError):
    """A weight file that is missing, damaged or unknown."""

    exit_code = 6
