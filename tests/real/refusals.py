"""Runs one check in a child process and says what became of it."""
import io
import json
import os
import sys
import traceback

# What software raises to refuse. Anything else is a fault of the stand-ins, and counted as such.
REFUSES = (AssertionError, ValueError, RuntimeError, NotImplementedError, SystemExit, ImportError)


class Outcome:
    """ok; refused, at a place of the checkout with a message; or lost, where a stand-in gave out."""

    def __init__(self, kind, place="", message="", stage=""):
        self.kind, self.place, self.message, self.stage = kind, place, message, stage


def place_of(error, roots):
    """file:line of the innermost frame in the software tried, and whether it raised by itself."""
    frames = traceback.extract_tb(error.__traceback__)
    for index in range(len(frames) - 1, -1, -1):
        for root in roots:
            if frames[index].filename.startswith(root):
                name = os.path.relpath(frames[index].filename, root)
                return f"{name}:{frames[index].lineno}", index == len(frames) - 1
    return "", False


def message_of(error, printed):
    if isinstance(error, SystemExit):  # argparse says why on standard error
        return (printed.strip().splitlines() or [""])[-1]
    return " ".join(f"{type(error).__name__}: {error}".split())


def outcome_of(check, roots):
    """What check(stage) came to; it calls stage(name) as it goes."""
    stages = [""]
    printed = io.StringIO()
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), printed
    try:
        check(stages.append)
    except REFUSES as error:
        place, own = place_of(error, roots)
        kind = "refused" if own or isinstance(error, SystemExit) else "lost"
        message = message_of(error, printed.getvalue())
        return Outcome(kind, place or "argparse", message, stages[-1])
    except Exception as error:  # pylint: disable=broad-except # anything else is ours
        place, _ = place_of(error, roots)
        return Outcome("lost", place, message_of(error, ""), stages[-1])
    finally:
        sys.stdout, sys.stderr = kept
    return Outcome("ok", stage=stages[-1])


def in_child(check, roots):
    """outcome_of in a child, so that no check sees what another left behind."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        with os.fdopen(writes, "w", encoding="utf-8") as pipe:
            json.dump(vars(outcome_of(check, roots)), pipe)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return Outcome(**json.loads(text)) if text else Outcome("lost", message="the child ended")
