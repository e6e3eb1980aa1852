# cuda-core takes its names from a folder per CUDA version when it is imported.
from typing import Any

LEGACY_DEFAULT_STREAM: Any
PER_THREAD_DEFAULT_STREAM: Any
Device: Any
DeviceMemoryResource: Any
DeviceMemoryResourceOptions: Any
LaunchConfig: Any
ObjectCode: Any
Program: Any
ProgramOptions: Any
Stream: Any
launch: Any
