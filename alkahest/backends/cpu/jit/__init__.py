"""Programs as machine code for the processor: LLVM assembly, explicit vectors, own mathematics."""
