"""The environment of candidates and graders, always built whole (V1): nothing of the controller's gets in.

Order, later ones win: the ambient environment without credentials (only with `BOXEVAL_HERMETIC=0`), boxeval's
own variables, the model's, and last what the suite says, which is the suite's own business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from boxeval.agents.interface import ModelAccess
from boxeval.sandbox.job import HOME, TMP, WORKSPACE
from boxeval.spec.plan import PlannedTask
from boxeval.spec.workspace import PROGRAMS

USER = "agent"
FIXTURE_PROGRAMS = f"{WORKSPACE}/{PROGRAMS}"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

CREDENTIAL_PARTS = (
    *("API", "AUTH", "BEARER", "COOKIE", "CREDENTIAL", "CREDS", "KEY", "KRB5", "LOGIN", "NETRC", "OTP"),
    *("PASSPHRASE", "PASSWD", "PASSWORD", "PRIVATE", "PROXY", "PWD", "SECRET", "SESSION", "SIGNING", "TOKEN"),
    *("CERT", "DSN", "DATABASE_URL", "WEBHOOK"),
)
"""A name with one of these anywhere in it may hold a credential, or the way to one."""

CREDENTIAL_ENDS = ("_PASS", "_PAT", "_SOCK", "_URI")

CREDENTIAL_PREFIXES = (
    # tools that act for the operator, and forges
    *("GIT_", "SSH_", "GPG_", "GH_", "GITHUB_", "GITLAB_", "GITEA_", "BITBUCKET_", "HUB_"),
    # clouds, clusters and container engines
    *(
        "AWS_",
        "AZURE_",
        "ARM_",
        "GOOGLE_",
        "GCP_",
        "GCLOUD_",
        "CLOUDSDK_",
        "ALIYUN_",
        "OCI_",
        "DIGITALOCEAN_",
    ),
    *("KUBE", "HELM_", "VAULT_", "CONSUL_", "NOMAD_", "TF_", "DOCKER_", "PODMAN_", "CONTAINER_", "BUILDAH_"),
    # model providers and agents
    *("OPENAI", "ANTHROPIC", "CLAUDE", "CODEX", "GEMINI", "MISTRAL", "COHERE", "GROQ", "XAI", "DEEPSEEK"),
    *("OPENROUTER", "TOGETHER", "FIREWORKS", "PERPLEXITY", "REPLICATE", "BEDROCK", "VERTEX", "OLLAMA", "LLM"),
    *("HF_", "HUGGING", "WANDB_", "LANGCHAIN", "LANGSMITH", "CURSOR", "COPILOT", "AIDER", "CLIO_", "AGENT"),
    # package registries, databases and build services
    *("NPM_", "YARN_", "PIP_", "UV_", "POETRY_", "TWINE_", "CARGO_", "PG", "MYSQL", "REDIS", "MONGO"),
    *("ACTIONS_", "RUNNER_", "BUILDKITE", "CIRCLE", "JENKINS", "SENTRY", "STRIPE", "SLACK", "SUDO_"),
    # boxeval's own settings and those of the desktop
    *("BOXEVAL", "DBUS_", "XDG_", "GNOME_", "KDE_", "DISPLAY", "WAYLAND", "XAUTHORITY", "VSCODE"),
)


def credential_like(name: str) -> bool:
    """Whether a variable of this name is kept out of boxes. Wide on purpose: better one name too many."""
    upper = name.upper()
    if upper.startswith(CREDENTIAL_PREFIXES) or upper.endswith(CREDENTIAL_ENDS):
        return True
    return any(part in upper for part in CREDENTIAL_PARTS)


def candidate_environment(
    task: PlannedTask,
    image_path: str,
    model: ModelAccess | None = None,
    *,
    ambient: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """What a candidate sees. With a model: its base URL for each protocol, the placeholder key and its name."""
    access = {}
    if model is not None:
        access = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": model.api_key,
            # Clients of this protocol put `/v1` in front of every path themselves.
            "ANTHROPIC_BASE_URL": model.base_url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": model.api_key,
            "BOXEVAL_MODEL": model.model,
        }
    path = f"{FIXTURE_PROGRAMS}:{image_path}" if task.workspace.bin else image_path
    return {**base_environment(path, ambient), **access, **task.env, **task.runner.env}


def home_files(task: PlannedTask) -> dict[str, bytes]:
    """Files of the home that go with the environment: a login shell sets PATH anew before it reads its profile."""
    return {".profile": f"PATH={FIXTURE_PROGRAMS}:$PATH\n".encode()} if task.workspace.bin else {}


def grader_environment(
    task: PlannedTask, image_path: str, *, ambient: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What `verify` commands see: no model, and nothing that the suite gives to the candidate."""
    return {**base_environment(image_path, ambient), **task.verify.env}


def base_environment(image_path: str, ambient: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every process of a box sees, whatever its task."""
    return {
        **_passed(ambient or {}),
        "PATH": image_path,
        "HOME": HOME,
        "USER": USER,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": TMP,
        "TERM": "dumb",
        "CI": "1",
        "BOXEVAL_WORKSPACE": WORKSPACE,
    }


def _passed(ambient: Mapping[str, str]) -> dict[str, str]:
    """Leaves out credential-like names, and what only a shell can read, such as exported functions."""
    return {
        name: value for name, value in ambient.items() if NAME.fullmatch(name) and not credential_like(name)
    }
