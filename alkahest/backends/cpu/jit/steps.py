"""In which order, and in which portions, the instructions of a program are written.

A step is an instruction, or several that are written together:

* a sine and a cosine of one argument;
* a product or a quotient of two exponentials, which is the exponential of a sum;
* selects on one nan test, with everything that only their unusual alternative needs
  (:func:`alkahest.program.parts.rarely`): that is a branch which hardly any vector takes.

Large programs are cut into pieces, functions of a bounded number of steps, loads and stores: LLVM's
effort grows faster than the length of a function. Values pass from one piece to later ones through slots of the
scratch memory, which are used again when their value is no longer needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import attrs

from alkahest.program import Program
from alkahest.program.rare_code import RareCode

PIECE = 400
"""Weight of a piece: about the number of its instructions, with what they load and store."""

_CIRCULAR = ("sin", "cos")


@attrs.frozen
class Step:
    """What is written together.

    Attributes:
        writes: numbers of the values that it gives.
        reads: numbers of the values that it needs.
        rare: instructions that its unusual alternative needs, in order.
    """

    writes: tuple[int, ...]
    reads: tuple[int, ...]
    rare: tuple[int, ...] = ()


def steps(
    program: Program, *, is_split: bool, pairs: bool = True, merges: bool = False
) -> list[Step]:
    """All steps of a program, in an order in which they can be written.

    Args:
        program: real.
        is_split: whether it stands for a complex one, so that nan tests are worth a look.
        pairs: whether sines and cosines are computed together.
        merges: whether exponentials that have no other use are merged.
    """
    first = program.first_instruction
    rare = RareCode(program) if is_split else None
    partners = _partners(program) if pairs else {}
    found = []
    merged = _merged(program) if merges else {}
    done: set[int] = set() if rare is None else set(rare.instructions)
    done.update(*(program.code[number - first].args for number in merged))
    for number, (_, args, _) in enumerate(program.code, first):
        if number in done:
            continue
        step = Step((number,), args)
        if number in merged:
            step = Step((number,), merged[number])
        elif number in partners:
            step = Step(partners[number], args)
        elif rare is not None and number in rare.selects:
            step = _branch(program, rare, rare.selects[number])
        done.update(step.writes)
        found.append(step)
    return found


def _partners(program: Program) -> dict[int, tuple[int, int]]:
    """The first of a sine and a cosine of one argument -> the numbers of both, sine first."""
    circular: dict[int, dict[str, int]] = {}
    for number, (op, args, _) in enumerate(program.code, program.first_instruction):
        if op in _CIRCULAR:
            circular.setdefault(args[0], {}).setdefault(op, number)
    pairs = [(both["sin"], both["cos"]) for both in circular.values() if len(both) == 2]
    return {min(pair): pair for pair in pairs}


def _merged(program: Program) -> dict[int, tuple[int, int]]:
    """Products and quotients of exponentials that nothing else needs -> their exponents."""
    first, code = program.first_instruction, program.code
    if "exp" not in program.ops_used:
        return {}
    uses = Counter(a for i in code for a in i.args)
    uses.update(program.outputs)

    def is_free(number: int) -> bool:
        return number >= first and uses[number] == 1 and code[number - first].op == "exp"

    return {
        number: (code[args[0] - first].args[0], code[args[1] - first].args[0])
        for number, (op, args, _) in enumerate(code, first)
        if op in ("mul", "div") and all(map(is_free, args))
    }


def _branch(program: Program, rare: RareCode, together: tuple[int, ...]) -> Step:
    """The step of several selects on one nan test."""
    code, first = program.code, program.first_instruction
    selects = [code[number - first] for number in together]
    behind = rare.needed(select.args[1] for select in selects)
    reads = [a for select in selects for a in select.args]
    reads += [a for number in behind for a in code[number - first].args]
    inside = set(behind)
    return Step(together, tuple(a for a in dict.fromkeys(reads) if a not in inside), tuple(behind))


@attrs.frozen
class Pieces:
    """A program cut into functions.

    Attributes:
        parts: the steps of each.
        slots: value that passes from one part to another -> its slot in the scratch memory.
        count: number of slots.
        kept: inputs that are outputs, too: they have a slot from the beginning to the end.
    """

    parts: Sequence[Sequence[Step]]
    slots: Mapping[int, int]
    count: int
    kept: Sequence[int] = ()


def cut(found: Sequence[Step], program: Program, weight: Callable[[Step], float]) -> Pieces:
    """Pieces of at most :data:`PIECE`; all outputs that are computed stay in slots to the end.

    A step weighs what ``weight`` says and one for every value that its piece has to load for it, and
    for every output that it gives.
    """
    parts: list[list[Step]] = [[]]
    size = 0.0
    outputs = set(program.outputs)
    # Constants are never loaded.
    constants = frozenset(range(len(program.inputs), program.first_instruction))
    present: set[int] = set()
    for step in found:
        added = weight(step) + len(outputs.intersection(step.writes))
        loaded = set(step.reads) - present - constants
        if parts[-1] and size + added + len(loaded) > PIECE:
            parts.append([])
            size = 0.0
            present = set()
            loaded = set(step.reads) - constants
        parts[-1].append(step)
        present.update(step.reads, step.writes)
        size += added + len(loaded)
    last: dict[int, int] = {}
    for position, part in enumerate(parts):
        for step in part:
            last.update(dict.fromkeys(step.reads, position))
    last.update(dict.fromkeys(program.outputs, len(parts)))
    kept = sorted({value for value in program.outputs if value < len(program.inputs)})
    slots = {value: slot for slot, value in enumerate(kept)}
    free: list[int] = []
    ending: dict[int, list[int]] = {}
    count = len(kept)
    for position, part in enumerate(parts):
        free += ending.pop(position, ())
        for step in part:
            for value in step.writes:
                if last.get(value, position) > position:
                    if not free:
                        free.append(count)
                        count += 1
                    slots[value] = free.pop()
                    # The piece that reads it last may write its own values in any order.
                    ending.setdefault(last[value] + 1, []).append(slots[value])
    return Pieces(parts, slots, count, kept)
