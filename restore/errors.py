"""The errors a user can meet, each with the exit code of the command that prints it."""


class RestoreError(Exception):
    """Base of every error that is the user's to read: one line, naming the file and a way out."""

    exit_code: int = 1


class UsageError(RestoreError):
    """An option or argument that cannot be used."""

    exit_code = 2


class InputError(RestoreError):
    """An input file that cannot be read."""

    exit_code = 3


class OutputError(RestoreError):
    """An output file that cannot be written."""

    exit_code = 4


class InterruptedRun(RestoreError):
    """A run that was stopped before its end."""

    exit_code = 5


class WeightsError(RestoreError):
    """A weight file that is missing, damaged or of another model."""

    exit_code = 6
