# cuda-bindings is compiled and ships no types; pyright cannot even see its names.
from typing import Any

driver: Any
nvrtc: Any
__file__: str
