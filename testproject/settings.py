"""
Settings of the test project.

The database comes from ``DATABASE_URL`` and is a SQLite file when nothing is
said. With PostgreSQL behind a unix socket the folder of the socket goes into the
query, as in ``postgres://user@:5432/name?host=/run/postgresql``.
"""

from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

SECRET_KEY = env.str("SECRET_KEY", default="for-demonstration-only-never-deployed")
DEBUG = env.bool("DEBUG", default=True)
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_runstore",
    "testproject",
    "testproject.corpus",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "testproject.urls"
WSGI_APPLICATION = None

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{BASE_DIR / 'db.sqlite3'}")}

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Readers never wait for the writer (WAL), and a transaction takes the write
    # lock when it begins: one that reads first and writes later would otherwise
    # fail at once instead of waiting for its turn.
    DATABASES["default"]["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        **DATABASES["default"].get("OPTIONS", {}),
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"

# The demonstration and the tests with real processes do not wait for half a minute until
# a lease has expired. Everything is a tenth of its default, the relations are the same.
if env.str("RUNSTORE_LEASES", default="default") == "short":
    RUNSTORE = {
        "LEASE": {
            "HEARTBEAT_INTERVAL_MS": 100,
            "STALE_AFTER_MS": 3_000,
            "SKEW_ALLOWANCE_MS": 1_000,
        },
        "POLL_INTERVAL_MS": 100,
        "STOP_GRACE_MS": 2_000,
    }
