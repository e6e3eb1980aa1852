# cuda-bindings is compiled and ships no types; pyright cannot even see its names.
from typing import Any

driver: Any
__file__: str
