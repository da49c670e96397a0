"""Print pip constraints that pin every run-time dependency of pyproject.toml to its lower bound."""

import re
import sys
import tomllib
from pathlib import Path

TOOLS = ("dev", "docs", "bench")  # what works on the project, not what it needs

project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
requirements = [*project["dependencies"], *(r for name in extras if name not in TOOLS for r in extras[name])]
for requirement in sorted(set(requirements)):
    bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:,.*)?", requirement)
    if bound:
        print(f"{bound[1]}=={bound[2]}.*")
    elif not requirement.startswith("calirank["):
        sys.exit(f"no lower bound in {requirement!r}")
