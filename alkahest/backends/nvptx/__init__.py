"""The ``nvptx`` backend: programs to PTX through llvmlite, and PTX to numbers through the driver.

Code generation (``lowerings``, ``emit``, ``libdevice``, ``targets``, ``module``) and the emulated
device (``emulate``) need llvmlite only; ``driver`` and ``evaluator`` need a CUDA driver, and no
code generation module imports them.
"""
