"""Executors during whose work a process of theirs is killed."""

from __future__ import annotations

import os
import signal


class FirstTaskKills:
    """Hands tasks on to ``executor``; ``flag`` is a file that tells whether the first has run."""

    def __init__(self, executor, flag):
        self.executor, self.flag = executor, flag

    def __getattr__(self, name):
        return getattr(self.executor, name)

    def submit(self, function, /, *arguments):
        return self.executor.submit(_die_once, str(self.flag), function, *arguments)


class SubmissionKills:
    """Hands tasks on to ``executor``; ``process`` is killed before task number ``number``."""

    def __init__(self, executor, process, number):
        self.executor, self.process, self.number = executor, process, number
        self.submitted = 0

    def submit(self, *arguments):
        self.submitted += 1
        if self.submitted == self.number:
            os.kill(self.process, signal.SIGKILL)
        return self.executor.submit(*arguments)


def _die_once(flag, function, *arguments):
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
