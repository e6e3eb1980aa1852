"""Flat programs: what lies between expressions and backends."""

from alkahest.ops import Kind
from alkahest.program.lower import lower
from alkahest.program.records import Instruction, Program
from alkahest.program.serialise import digest, dumps, loads

__all__ = ["Instruction", "Kind", "Program", "digest", "dumps", "loads", "lower"]
