"""Files of the operator's machine that a case run names: settings, runtime configuration, source map, project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from boxeval.errors import SuiteError, UsageError
from boxeval.formats import seeds
from boxeval.formats.case_sources import named_source, read_source_map
from boxeval.formats.project import project_digest
from boxeval.formats.protected import ProtectedRoots
from boxeval.formats.run_settings import load_settings_file
from boxeval.formats.runtime_config import Runtime, load_runtime
from boxeval.spec.policy import ReadOnlyMount

FORMAT = {"format": "boxeval.runtime.v1"}


def runtime(
    directory: Path, tree: dict[str, Any], environ: dict[str, str] | None = None, **more: Any
) -> Runtime:
    file = directory / "runtime.json"
    file.write_text(yaml.safe_dump(FORMAT | tree))
    return load_runtime(
        file,
        environ or {},
        lambda name: "KEY" in name,
        more.get("protected", ProtectedRoots()),
        more.get("home", directory / "home"),
    )


def refused(directory: Path, tree: dict[str, Any], **more: Any) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        runtime(directory, tree, **more)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def repository(path: Path) -> Path:
    (path / ".git/objects").mkdir(parents=True)
    (path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return path


@pytest.mark.contract("G75")
def test_variables_are_inherited_and_set(tmp_path: Path) -> None:
    made = runtime(
        tmp_path,
        {
            "environment": {
                "inherit": ["A", "B", "PATH"],
                "set": {"B": "set", "CACHE": "{{sevro.runtime}}/uv:{{boxeval.runtime}}"},
            }
        },
        {"A": "a", "B": "b", "PATH": "/bin", "C": "c"},
    )
    assert made.env == {"A": "a", "B": "set", "CACHE": "/home/agent/.runtime/uv:/home/agent/.runtime"}
    assert made.notes == ("the runtime configuration's PATH is not used: boxes have that of their image",)


@pytest.mark.contract("G75")
@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"inherit": ["X_KEY"]},
            "environment.inherit[0]: `X_KEY` is named like a credential; none ever enters a box",
        ),
        (
            {"set": {"X_KEY": "1"}},
            "environment.set.X_KEY: `X_KEY` is named like a credential; none ever enters a box",
        ),
        ({"inherit": ["GONE"]}, "environment.inherit[0]: `GONE` is not set in boxeval's environment"),
        ({"inherit": ["A", "A"]}, "environment.inherit[1]: `A` is named twice"),
        ({"set": {"PATH": "/x"}}, "environment.set.PATH: boxes have the PATH of their image"),
        *(
            (
                {"set": {name: "1"}},
                f"environment.set.{name}: `{name}` is boxeval's own, or steers a shell or loader",
            )
            for name in (
                "HOME",
                "TMPDIR",
                "BASH_ENV",
                "LD_PRELOAD",
                "BOXEVAL_X",
                "SEVRO_X",
                "CODEX_HOME",
            )
        ),
    ],
)
def test_variables_that_are_refused(tmp_path: Path, tree: dict[str, Any], said: str) -> None:
    assert refused(tmp_path, {"environment": tree}, environ={"A": "", "X_KEY": "secret"}) == [said]


@pytest.mark.contract("G75")
def test_counts_and_sizes_at_and_past_their_edge(tmp_path: Path) -> None:
    names = [f"A{n}" for n in range(65)]
    environ = dict.fromkeys(names, "")
    assert len(runtime(tmp_path, {"environment": {"inherit": names[:64]}}, environ).env) == 64
    [said] = refused(tmp_path, {"environment": {"inherit": names}}, environ=environ)
    assert said.startswith("environment.inherit: ") and "64" in said
    assert len(runtime(tmp_path, {"environment": {"set": dict.fromkeys(names[:64], "")}}).env) == 64
    assert runtime(tmp_path, {"environment": {"set": {"A": "x" * 8192}}}).env == {"A": "x" * 8192}
    [said] = refused(tmp_path, {"environment": {"set": {"A": "x" * 8193}}})
    assert said.startswith("environment.set.A: ") and "8192" in said
    [said] = refused(tmp_path, {"environment": {"set": {"A" * 129: ""}}})
    assert said.startswith("environment.set")
    [said] = refused(tmp_path, {"environment": {"set": environ}})
    assert said.startswith("environment.set: ") and "64" in said
    file = tmp_path / "edge.json"
    for size, good in ((65_536, True), (65_537, False)):
        file.write_bytes(b'{"format": "sevro.runtime.v1"}'.ljust(size))
        try:
            load_runtime(file, {}, bool, ProtectedRoots(), tmp_path)
            read = True
        except SuiteError as error:
            assert "larger than 65536 bytes" in str(error)
            read = False
        assert read is good


@pytest.mark.contract("G75")
def test_the_file_is_regular_and_no_link_and_says_its_format(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"format": "sevro.runtime.v1"}')
    (tmp_path / "link.json").symlink_to("good.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name, said in (
        ("link.json", "it is a symlink"),
        ("pipe.json", "not a regular file"),
        ("gone", "No such"),
    ):
        with pytest.raises(SuiteError, match=said):
            load_runtime(tmp_path / name, {}, bool, ProtectedRoots(), tmp_path)
    (tmp_path / "other.json").write_text('{"format": "sevro.runtime.v2"}')
    with pytest.raises(SuiteError, match="format"):
        load_runtime(tmp_path / "other.json", {}, bool, ProtectedRoots(), tmp_path)
    passive = "would change how the candidate runs, and the condition is `passive` always"
    assert refused(tmp_path, {"hooks": {"nativeGoal": True, "plugins": ["x"]}}) == [
        f"hooks.nativeGoal: {passive}",
        f"hooks.plugins: {passive}",
    ]
    assert runtime(tmp_path, {"hooks": {"nativeGoal": False, "plugins": []}}).host_options == {}
    assert refused(tmp_path, {"networks": 1}) == [": unknown key `networks`"]


@pytest.mark.contract("G75", "G31", "G33")
def test_read_only_roots_are_resolved_and_kept_apart_from_protected_ones(tmp_path: Path, tools: Path) -> None:
    secret, here = tmp_path / "project/secret", tools
    secret.mkdir(parents=True)
    made = runtime(
        tmp_path,
        {
            "filesystem": {
                "readOnlyRoots": [f"{here}/./../{here.name}"],
                "optionalReadOnlyRoots": ["gone", "~/x"],
            }
        },
    )
    assert made.mounts == (ReadOnlyMount(source=str(here.resolve()), target=str(here)),)
    [said] = refused(tmp_path, {"filesystem": {"readOnlyRoots": ["gone"]}})
    assert said.startswith("filesystem.readOnlyRoots[0]: ") and "No such file" in said
    protected = ProtectedRoots.of([tmp_path / "project"], [])
    (tmp_path / "alias").symlink_to("project/secret")
    for text in ("project", "project/secret", ".", "alias"):
        [said] = refused(tmp_path, {"filesystem": {"readOnlyRoots": [text]}}, protected=protected)
        assert f"is, holds or lies in the protected root {tmp_path / 'project'}" in said
    assert runtime(tmp_path, {"filesystem": {"readOnlyRoots": [str(here)]}}, protected=protected).mounts


@pytest.mark.contract("G32", "G33")
def test_protected_roots_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be verified: No such file"):
        ProtectedRoots.of([tmp_path / "gone"], [])
    with pytest.raises(UsageError, match="must be absolute"):
        ProtectedRoots.of([Path("here")], [])
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        ProtectedRoots.of([tmp_path / "file"], [])


@pytest.mark.contract("G33")
def test_a_fixture_may_come_from_the_project_but_not_from_a_declared_root(tmp_path: Path) -> None:
    project, private = tmp_path / "project", tmp_path / "private"
    project.mkdir()
    (private / "inner").mkdir(parents=True)
    roots = ProtectedRoots.of([private], [(project, "--project-root")])
    assert roots.source_fault(project) is None
    said = roots.fault(project)
    assert said and said.endswith("is, holds or lies in --project-root")
    for place in (private, private / "inner", tmp_path):
        said = roots.source_fault(place)
        assert said and said.endswith(f"is, holds or lies in the protected root {private}")


@pytest.mark.contract("G36", "G37", "G75")
def test_parts_of_the_home_that_graders_are_shown(tmp_path: Path) -> None:
    shown = {"nativeTranscripts": True, "candidateArtifacts": {"state": ".local/state"}}
    made = runtime(tmp_path, shown)
    assert made.host_options == {"transcripts": True, "artifacts": {"state": ".local/state"}}
    assert made.digest != runtime(tmp_path, {**shown, "nativeTranscripts": False}).digest
    assert refused(tmp_path, {"candidateArtifacts": {"up": "../x", "root": "/etc"}}) == [
        "candidateArtifacts.root: `/etc` is absolute; write it relative to the candidate's home",
        "candidateArtifacts.up: `../x` leaves the candidate's home with `..`",
    ]
    assert refused(tmp_path, {"candidateArtifacts": {"Up": "x"}})


@pytest.mark.contract("G75", "G26")
def test_seeds_are_read_by_role(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d/f").write_text(name)
    (tmp_path / "one/link").symlink_to("d/f")

    def seeds(*roles: str) -> dict[str, Any]:
        two = {"source": "two", "target": "b", **({"roles": list(roles)} if roles else {})}
        return {"runtime": {"seedDirectories": [{"source": "./one", "target": "a"}, two]}}

    made = runtime(tmp_path, seeds("checks", "semantic"))
    paths = {
        role: [(entry.path, entry.open().read() if entry.open else entry.link) for entry in fixture.entries()]
        for role, fixture in made.seeds.items()
    }
    a = [(b"a", b""), (b"a/d", b""), (b"a/d/f", b"one"), (b"a/link", b"d/f")]
    b = [(b"b", b""), (b"b/d", b""), (b"b/d/f", b"two")]
    assert paths == {"candidate": a, "checks": a + b, "semantic": b}
    assert set(runtime(tmp_path, seeds()).seeds) == {"candidate", "checks"}
    assert runtime(tmp_path, seeds()).digest != made.digest
    (tmp_path / "one/d/f").write_text("changed")
    assert runtime(tmp_path, seeds("checks", "semantic")).digest != made.digest


@pytest.mark.contract("G75", "G33")
def test_seeds_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (seeds.MAX_ENTRIES, seeds.MAX_BYTES) == (16_384, 512 * 1024 * 1024)
    good = tmp_path / "good"
    good.mkdir()
    (good / "f").write_bytes(b"12345")

    def told(*made: tuple[str, str], **more: Any) -> str:
        tree = {"runtime": {"seedDirectories": [{"source": s, "target": t} for s, t in made]}}
        [said] = refused(tmp_path, tree, **more)
        return said.removeprefix("runtime.seedDirectories")

    assert told(("good", "a"), ("good", "a")) == "[1].target: `a` is taken"
    assert told(("good", "home")) == "[0].target: `home` is taken"
    assert told(("good", "A")).startswith("[0].target: ")
    assert "No such file" in told(("gone", "a"))
    assert "the protected root" in told(("good", "a"), protected=ProtectedRoots.of([tmp_path], []))
    for name, make, said in (
        ("out", lambda p: p.symlink_to("../good/f"), "is a symlink that leads out"),
        ("loop", lambda p: p.symlink_to("/"), "is a symlink that leads out"),
        ("pipe", os.mkfifo, "is a FIFO"),
    ):
        place = tmp_path / name
        place.mkdir()
        make(place / "x")
        assert said in told((name, "a"))
    monkeypatch.setattr(seeds, "MAX_BYTES", 5)
    seeds.read_seed(good, "good")
    monkeypatch.setattr(seeds, "MAX_BYTES", 4)
    assert told(("good", "a")).endswith("is larger than 4 bytes; a seed is at most that")
    monkeypatch.setattr(seeds, "MAX_BYTES", 100)
    monkeypatch.setattr(seeds, "MAX_ENTRIES", 1)
    seeds.read_seed(good, "good")
    (good / "g").touch()
    assert told(("good", "a")).endswith("has 2 entries; a seed has at most 1")


@pytest.mark.contract("G76", "G69")
def test_settings_and_their_digest(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "{host: codex, model: m, effort: high, condition: passive, trials: 3, threshold: 0.5, jobs: 2}"
    )
    made = load_settings_file(file)
    assert made.choose(None, "trials", 1) == 3 and made.choose(7, "trials", 1) == 7
    assert made.choose(None, "semantic_host", "x") == "x"
    file.write_text(
        "jobs: 2\nthreshold: 0.5\ntrials: 3\ncondition: passive\neffort: high\nmodel: m\nhost: codex\n"
    )
    assert load_settings_file(file).digest == made.digest is not None
    file.write_text(
        "jobs: 2\nthreshold: 0.5\ntrials: 4\ncondition: passive\neffort: high\nmodel: m\nhost: codex\n"
    )
    assert load_settings_file(file).digest != made.digest
    assert load_settings_file(None).digest is None
    for text, said in (
        ("trials: 0", "trials"),
        ("threshold: 1.5", "threshold"),
        ("tries: 3", "did you mean `trials`"),
    ):
        file.write_text(text)
        with pytest.raises(SuiteError, match=said):
            load_settings_file(file)


@pytest.mark.contract("G57")
def test_the_source_map_names_repositories_below_its_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    good = repository(root / "a repo")
    repository(tmp_path / "outside")
    (root / "way-out").symlink_to(tmp_path / "outside")
    (root / "plain").mkdir()
    file = tmp_path / "map.json"

    def told(url: object) -> str:
        file.write_text(yaml.safe_dump({"x": url}))
        with pytest.raises(SuiteError) as caught:
            read_source_map(file, root)
        [problem] = caught.value.problems
        assert (problem.path, problem.line) == ("x", 1)
        return problem.message

    file.write_text(yaml.safe_dump({"x": good.as_uri()}))
    assert read_source_map(file, root) == {"x": good} == {"x": named_source("x", file, root)}
    for url, said in (
        (str(good), "must be a file:/// URL"),
        ("https://example.com/x", "must be a file:/// URL"),
        (f"file://elsewhere.example{good}", "must be a file:/// URL"),
        (5, "must be a file:/// URL"),
        (good.as_uri() + "?a", "has a query or a fragment"),
        ((root / "gone").as_uri(), "cannot be read: No such file or directory"),
        ((root / "way-out").as_uri(), "is not below --case-source-root"),
        (f"{root.as_uri()}/../outside", "is not below --case-source-root"),
        ((root / "plain").as_uri(), "is not the root of a Git repository"),
    ):
        assert told(url).endswith(said), url
    file.write_text("{}")
    with pytest.raises(UsageError, match=r"sourceRef `x` is not in .* \(known: none\)"):
        named_source("x", file, root)
    with pytest.raises(UsageError, match="needs --case-source-root and --case-source-map-file"):
        named_source("x", None, root)
    with pytest.raises(UsageError, match="--case-source-root"):
        read_source_map(file, tmp_path / "gone")


@pytest.mark.contract("G69")
def test_the_project_is_a_digest_over_its_files(tmp_path: Path) -> None:
    root, twin = tmp_path / "project", tmp_path / "twin"
    for place in (root, twin):
        (place / "src").mkdir(parents=True)
        (place / "src/a").write_text("a")
        (place / "out").symlink_to("/nowhere")
        os.mkfifo(place / "pipe")
    base = project_digest(root)
    assert base == project_digest(twin)
    (root / "results").mkdir()
    (root / "results/x").touch()
    assert project_digest(root, (root / "results",)) == base != project_digest(root)
    for change in (
        lambda: (twin / "src/a").write_text("b"),
        lambda: (twin / "src/a").chmod(0o755),
        lambda: (twin / "src/a").rename(twin / "src/b"),
        lambda: repository(twin),
        lambda: (twin / ".git/HEAD").write_text("1" * 40 + "\n"),
    ):
        before = project_digest(twin)
        change()
        assert project_digest(twin) != before or change.__code__.co_names[0] == "repository"
    with pytest.raises(UsageError, match="is not a directory"):
        project_digest(root / "src/a")
