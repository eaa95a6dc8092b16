"""Run the Python blocks of a page, one after the other, as a reader would.

Usage: python .ci/blocks.py PAGE
"""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def main(page: Path) -> int:
    """Run the blocks in one namespace; a block that raises ends with its traceback."""
    names: dict[str, object] = {}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for number, block in enumerate(blocks, start=1):
        print(f"--- {page.name}, block {number} of {len(blocks)}", flush=True)
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
