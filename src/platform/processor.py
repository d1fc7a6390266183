"""What the processor can do."""

from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


def has_avx512() -> bool:
    """Whether the first processor has the AVX-512 foundation; False where nobody says."""
    try:
        lines = CPU_INFO.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return "avx512f" in flags.split()
