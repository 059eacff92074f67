"""The one exception that is meant for people rather than for programmers."""


class UserError(Exception):
    """Something the user can mend: bad input, bad settings, a missing file.

    The message says what is wrong, where (file, line, column) and what to do about it.
    The command line prints it without a traceback and exits with code 2.
    """
