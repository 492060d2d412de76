"""`headrace providers install`: what it asks uv and pip for, with a folder of wheels in place of the registry."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile

import pytest
from packaging.requirements import Requirement

from headrace.actions.installing_providers import Sources, install_providers
from headrace.actions.provider_names import unsaid_requirements
from headrace.actions.provider_packages import installed_providers, wanted
from headrace.actions.provider_wheels import plan_wheels
from headrace.errors import StateError, UsageError

PREFIX = "apache-airflow-providers-"


class WheelHouse:
    """Wheels with nothing in them but their names and requirements."""

    def __init__(self, folder):
        self.folder = folder
        self.fetched = []

    def add(self, name, version="1.0", requires=(), provider=False):
        stem = f"{name.replace('-', '_')}-{version}"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {one}" for one in requires]
        extras = {one.partition("extra == '")[2].rstrip("'") for one in requires if "extra ==" in one}
        lines += [f"Provides-Extra: {extra}" for extra in extras]
        files = {
            "METADATA": "\n".join(lines) + "\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "RECORD": "",
        }
        if provider:
            files["entry_points.txt"] = "[apache_airflow_provider]\nprovider_info=nowhere:nothing\n"
        with zipfile.ZipFile(self.folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            for file, text in files.items():
                wheel.writestr(f"{stem}.dist-info/{file}", text)

    def provider(self, name, version="1.0", requires=()):
        self.add(f"{PREFIX}{name}", version, ("apache-airflow>=2.11.0", *requires), provider=True)

    def fetch(self, wish):
        self.fetched.append(str(wish))
        versions = [path for path in self.folder.glob(f"{wish.name.replace('-', '_')}-*.whl")]
        fitting = [path for path in versions if path.name.split("-")[1] in wish.specifier]
        return max(fitting)


@pytest.fixture
def house(tmp_path):
    (tmp_path / "wheels").mkdir()
    return WheelHouse(tmp_path / "wheels")


def names(text):
    return [str(one) for one in wanted(text.split())]


def test_providers_go_by_short_names_with_extras_and_versions():
    assert names("sftp common.sql amazon[aiobotocore]>=9 apache_airflow_providers_http==6.3.0") == [
        f"{PREFIX}sftp",
        f"{PREFIX}common-sql",
        f"{PREFIX}amazon[aiobotocore]>=9",
        f"{PREFIX}http==6.3.0",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sftpp", "Airflow has no provider `sftpp`\nhint: did you mean `sftp`?"),
        ("completely-else", "goes by its whole name"),
        ("apache-airflow", "is Airflow itself"),
        ("sftp==", "expected `sftp`, `sftp[extra]` or `sftp==1.2.3`, got: `sftp==`"),
    ],
)
def test_names_that_cannot_be_meant_are_refused(name, words):
    with pytest.raises(UsageError) as caught:
        wanted([name])
    assert words in str(caught.value)


def test_the_plan_follows_providers_and_leaves_airflow_out(house):
    house.provider(
        "sftp", requires=[f"{PREFIX}ssh>=2", "paramiko>=4", "odd ; python_version < '3'", "fs ; extra == 'fs'"]
    )
    house.provider("ssh", "1.0")
    house.provider("ssh", "2.0", [f"{PREFIX}common-compat", "Paramiko>=3", "apache-airflow-task-sdk"])
    house.provider("common-compat")
    plan = plan_wheels([Requirement(f"{PREFIX}sftp[fs]")], house.fetch)
    assert sorted(plan.wheels) == [f"{PREFIX}common-compat", f"{PREFIX}sftp", f"{PREFIX}ssh"]
    assert "2.0" in plan.wheels[f"{PREFIX}ssh"].name
    assert plan.others == ["paramiko>=4", "fs", "paramiko>=3"]


def test_the_plan_fetches_again_what_a_later_requirement_does_not_accept(house):
    house.provider("http", "1.0")
    house.provider("http", "2.0")
    house.provider("slack", requires=[f"{PREFIX}http<2"])
    plan = plan_wheels(wanted(["http", "slack"]), house.fetch)
    assert "1.0" in plan.wheels[f"{PREFIX}http"].name
    assert house.fetched == [f"{PREFIX}http", f"{PREFIX}slack", f"{PREFIX}http<2"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_both_installers_bring_everything_but_airflow(house, tmp_path, installer):
    if not (importlib.util.find_spec(installer) or (installer == "uv" and shutil.which("uv"))):
        pytest.skip(f"{installer} is not installed")
    house.provider("sftp", requires=["paramiko"])
    for name in ("paramiko", *unsaid_requirements({"sftp"})):
        house.add(name)
    target = tmp_path / "site"
    sources = Sources(target, (str(house.folder),), without_index=True)
    install_providers(["sftp"], sources, installer)
    assert [(one.name, one.version) for one in installed_providers([str(target)])] == [("sftp", "1.0")]
    assert (target / "paramiko-1.0.dist-info").exists() and not list(target.glob("apache_airflow-*"))

    # The message is the same for both, and uv is the quicker one.
    if installer == "pip":
        return
    with pytest.raises(StateError) as caught:
        install_providers(["http"], sources, installer)
    assert f"could not install `{PREFIX}http`" in str(caught.value) and "--find-links FOLDER" in str(caught.value)


def test_refuses_beside_airflow_itself(tmp_path):
    info = tmp_path / "apache_airflow_core-3.3.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-airflow-core\nVersion: 3.3.2\n")
    with pytest.raises(StateError, match=r"Airflow itself is installed here \(`apache-airflow-core` 3.3.2\)"):
        install_providers(["sftp"], Sources(tmp_path))
