"""Environments are built whole, and jobs say exactly what runs."""

from __future__ import annotations

from typing import Any

import pytest

from boxeval.agents.environment import candidate_environment, credential_like, grader_environment, home_files
from boxeval.agents.hosts import host_of
from boxeval.agents.interface import ModelAccess
from boxeval.agents.registry import agent_for
from boxeval.spec.plan import PlannedTask
from boxeval.spec.suite import Runner, RunnerKind

IMAGE_PATH = "/usr/local/bin:/usr/bin:/bin"
ACCESS = ModelAccess("http://127.0.0.1:8080/t/token/v1", "boxeval-placeholder", "small")
BASE = {
    "PATH": IMAGE_PATH,
    "HOME": "/home/agent",
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
    "TERM": "dumb",
    "CI": "1",
    "BOXEVAL_WORKSPACE": "/workspace",
}
MODEL_VARIABLES = {
    "OPENAI_BASE_URL": ACCESS.base_url,
    "OPENAI_API_KEY": "boxeval-placeholder",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080/t/token",
    "ANTHROPIC_API_KEY": "boxeval-placeholder",
    "BOXEVAL_MODEL": "small",
}


def planned(runner: dict[str, Any], **more: Any) -> PlannedTask:
    data = {
        "task": "t",
        "target": "one",
        "image": "boxeval/base",
        "graderImage": "boxeval/base",
        "policy": "default",
        "workspace": {"kind": "inline", "files": {}},
        "fixtureRecipe": "0" * 64,
        "identity": "0" * 64,
        "verify": {},
        "agentTimeoutMs": 5000,
        "graderTimeoutMs": 5000,
        "runner": {"kind": "external-command", **runner},
        **more,
    }
    return PlannedTask.model_validate(data, strict=False)


SECRETS = {
    "GH_TOKEN": "s3cret",
    "SSH_AUTH_SOCK": "/run/s3cret",
    "GIT_CONFIG_GLOBAL": "s3cret",
    "OPENAI_API_KEY": "s3cret",
    "ANTHROPIC_BASE_URL": "s3cret",
    "DOCKER_HOST": "s3cret",
    "https_proxy": "http://user:s3cret@proxy",
}


@pytest.mark.contract("V1", "G50")
def test_nothing_of_the_controllers_environment_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SECRETS, "HARMLESS": "s3cret"}.items():
        monkeypatch.setenv(name, value)
    task = planned({"command": "true"})
    assert candidate_environment(task, IMAGE_PATH) == BASE
    assert home_files(task) == {}
    assert candidate_environment(task, IMAGE_PATH, ACCESS) == BASE | MODEL_VARIABLES
    assert grader_environment(task, IMAGE_PATH) == BASE


@pytest.mark.contract("V1")
def test_what_the_suite_says_comes_last() -> None:
    task = planned(
        {"command": "true", "env": {"SHARED": "runner", "TZ": "Asia/Tokyo"}},
        env={"SHARED": "target", "TARGET_ONLY": "1", "OPENAI_BASE_URL": "http://elsewhere"},
        verify={"env": {"GRADER_ONLY": "1", "LANG": "C"}},
    )
    seen = candidate_environment(task, IMAGE_PATH, ACCESS)
    assert seen == BASE | MODEL_VARIABLES | {
        "SHARED": "runner",
        "TARGET_ONLY": "1",
        "TZ": "Asia/Tokyo",
        "OPENAI_BASE_URL": "http://elsewhere",
    }
    assert grader_environment(task, IMAGE_PATH) == BASE | {"GRADER_ONLY": "1", "LANG": "C"}


def test_an_explicit_credential_is_the_suites_own_business() -> None:
    task = planned({"command": "true", "env": {"SERVICE_TOKEN": "of-the-task"}})
    assert candidate_environment(task, IMAGE_PATH)["SERVICE_TOKEN"] == "of-the-task"


def test_the_ambient_environment_passes_without_credentials_and_overrides_nothing() -> None:
    ambient = {
        **SECRETS,
        "EDITOR": "vi",
        "PATH": "/host/bin",
        "HOME": "/root",
        "BASH_FUNC_x%%": "() { :; }",
        "odd name": "x",
    }
    task = planned({"command": "true"})
    assert candidate_environment(task, IMAGE_PATH, ambient=ambient) == BASE | {"EDITOR": "vi"}
    assert grader_environment(task, IMAGE_PATH, ambient=ambient) == BASE | {"EDITOR": "vi"}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "gitlab_private_token",
            "CI_JOB_JWT_TOKEN",
            "NPM_TOKEN",
            "npm_config__auth",
        ),
        *("API_KEY", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CONNECTION", "GPG_TTY", "GIT_DIR", "GIT_ASKPASS"),
        *(
            "AWS_ACCESS_KEY_ID",
            "AWS_PROFILE",
            "AZURE_CLIENT_ID",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "KUBECONFIG",
        ),
        *("DB_PASSWORD", "MYSQL_PWD", "PGPASSFILE", "DATABASE_URL", "SENTRY_DSN", "REDIS_URL", "MONGO_URI"),
        *(
            "OPENAI_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDECODE",
            "CODEX_HOME",
            "GEMINI_X",
            "MISTRAL_X",
            "HF_HOME",
        ),
        *("DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "CONTAINER_HOST", "VAULT_ADDR"),
        *("HTTP_PROXY", "https_proxy", "NETRC", "SMTP_PASS", "MY_SECRET", "SESSION_ID", "XDG_SESSION_ID"),
        *(
            "DBUS_SESSION_BUS_ADDRESS",
            "BOXEVAL_KEY_FILE",
            "AGENT_SESSION",
            "AZURE_DEVOPS_EXT_PAT",
            "SUDO_USER",
        ),
        *("XDG_RUNTIME_DIR", "PWD", "OLDPWD", "PIP_INDEX_URL", "UV_INDEX_URL", "Cookie", "S3_SIGNING_ID"),
    ],
)
def test_names_that_look_like_credentials(name: str) -> None:
    assert credential_like(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "TZ",
            "EDITOR",
            "SHELL",
            "TERM",
            "LOGNAME",
            "CC",
            "CFLAGS",
            "MAKEFLAGS",
        ),
        *("PYTHONPATH", "LD_LIBRARY_PATH", "JAVA_HOME", "GOPATH", "NO_COLOR", "COLUMNS", "DEBUG"),
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not credential_like(name)


def test_a_command_is_shell_text() -> None:
    (job,) = agent_for(RunnerKind.EXTERNAL_COMMAND).jobs(planned({"command": "a | b"}), IMAGE_PATH)
    assert job.argv == ("sh", "-e", "-c", "a | b")
    assert job.env == BASE
    assert (job.cwd, job.stdin, job.timeout_ms) == ("/workspace", b"", 5000)


def test_a_command_with_args_is_a_program() -> None:
    task = planned({"command": "make", "args": ["-j", "$HOME"], "stdin": "é", "cwd": "sub/dir"})
    (job,) = agent_for(RunnerKind.EXTERNAL_COMMAND).jobs(task, IMAGE_PATH)
    assert job.argv == ("make", "-j", "$HOME")
    assert (job.cwd, job.stdin) == ("/workspace/sub/dir", "é".encode())
    bare = planned({"command": "my program", "args": []})
    assert agent_for(RunnerKind.EXTERNAL_COMMAND).jobs(bare, IMAGE_PATH)[0].argv == ("my program",)


def test_commands_are_a_job_each() -> None:
    jobs = agent_for(RunnerKind.EXTERNAL_COMMAND).jobs(
        planned({"commands": ["one", "two"]}), IMAGE_PATH, ACCESS
    )
    assert [job.argv[-1] for job in jobs] == ["one", "two"]
    assert all(job.env == BASE | MODEL_VARIABLES for job in jobs)


def test_the_reference_agent_gets_a_long_prompt_by_stdin() -> None:
    prompt = "x" * 300_000
    task = planned({"kind": "scripted", "prompt": prompt, "permissions": "read-only"})
    (job,) = agent_for(RunnerKind.SCRIPTED).jobs(task, IMAGE_PATH, ACCESS)
    assert job.argv == ("python3", "-I", "/opt/boxeval/agent")
    assert job.stdin == prompt.encode()
    assert job.env == BASE | MODEL_VARIABLES | {"BOXEVAL_PERMISSIONS": "read-only"}


def test_every_kind_has_an_agent() -> None:
    adapters = {RunnerKind.AGENT: host_of(Runner(kind=RunnerKind.AGENT, agent="codex"))}
    for kind in RunnerKind:
        assert adapters.get(kind) or host_of(Runner(kind=kind)) or agent_for(kind)
