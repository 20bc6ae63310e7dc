import functools

import pytest
from typer import main, testing

from tests.cli.study import Study

# The tree of commands is built once, in place of for each command that a test runs.
testing._get_command = functools.cache(main.get_command)


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)
