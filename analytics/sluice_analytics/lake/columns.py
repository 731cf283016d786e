# SPDX-License-Identifier: Apache-2.0
"""The columns of each topic, as every engine and every analysis sees them.

They are the fields of schemas/avro with three differences, so that all engines agree on types: the
nested records `usage`, `shares` and `psi_*` are flattened into columns of this table; every time is an
integer, microseconds since 1970 UTC; enums are strings. Fields not named here are not read. A field
that a file's schema lacks (an older agent wrote it) is null; one that is not named here (a newer agent)
is ignored. A test compares this page with schemas/avro.
"""

import dataclasses

# --- from here on dev/records writes ---

FIELDS = (
    "cpu_user_ns", "cpu_system_ns", "run_delay_ns", "voluntary_switches", "involuntary_switches",
    "minor_faults", "major_faults", "peak_rss_bytes", "rss_bytes", "read_bytes", "write_bytes", "rchar",
    "wchar", "syscr", "syscw", "net_rx_bytes", "net_tx_bytes", "block_io_delay_ns", "threads_peak",
    "tcp_rx_bytes", "tcp_tx_bytes", "udp_rx_bytes", "udp_tx_bytes", "unix_rx_bytes", "unix_tx_bytes",
    "cpu_migrations", "thread_ns", "swapin_delay_ns", "reclaim_delay_ns", "thrashing_delay_ns",
    "compact_delay_ns", "wait_samples", "wait_uninterruptible_ns", "wait_stopped_ns", "wait_network_fs_ns",
    "wait_swap_ns", "wait_reclaim_ns", "wait_block_ns", "wait_network_ns", "wait_pipe_ns", "wait_lock_ns",
    "wait_child_ns", "wait_timer_ns", "wait_poll_ns", "wait_other_ns", "wait_throttled_ns", "anon_bytes",
    "shmem_bytes", "swap_bytes",
)  # fmt: skip
"""The fields of Resources in schemas/avro, in their order."""

LEVELS = ("peak_rss_bytes", "rss_bytes", "threads_peak", "anon_bytes", "shmem_bytes", "swap_bytes")
"""The fields that are levels: they have a largest value, no sum."""

SCHEMA_VERSION = 11
"""The newest schema_version that these are the fields of."""

# --- up to here ---

_SPLIT = tuple(f"{kind}_{way}_bytes" for kind in ("tcp", "udp", "unix") for way in ("rx", "tx"))

RESOURCES = tuple(name for name in FIELDS if name not in _SPLIT)
"""The columns of a flattened `usage`, all int64, null where the kernel has no value."""

BILL = (
    "cpu_ns", "run_queue_ns", "throttled_ns", "block_io_ns", "swap_ns", "reclaim_ns", "network_fs_ns", "network_ns",
    "pipe_ns", "lock_ns", "child_ns", "timer_ns", "poll_ns", "stopped_ns", "other_ns", "unknown_ns",
)  # fmt: skip
"""The columns of a flattened `bill`, all int64: parts that add up to thread_ns."""

SUMS = tuple(name for name in RESOURCES if name not in LEVELS)
"""The fields of RESOURCES that add up over programs and over time."""


@dataclasses.dataclass(frozen=True)
class Column:
    """One column: its name, Ibis type, path in the Avro record, and whether it is a time there."""

    name: str
    type: str
    path: str = ""
    is_time: bool = False

    @property
    def source(self) -> str:
        """The path in the Avro record, dots between nested names."""
        return self.path or self.name


def same_key(left: str, right: str) -> str:
    """The condition in SQL that two tables, by their aliases, have the same record."""
    return " AND ".join(f"{left}.{name} = {right}.{name}" for name in KEY)


def _plain(spec: str) -> list[Column]:
    kinds = {"s": "string", "i": "int64", "f": "float64", "b": "boolean", "as": "array<string>"}
    columns = []
    for word in spec.split():
        name, kind = word.split(":")
        columns.append(Column(name, "int64" if kind == "t" else kinds[kind], is_time=kind == "t"))
    return columns


def _nested(record: str, names: tuple[str, ...], kind: str, prefix: str = "") -> list[Column]:
    return [Column(prefix + name, kind, f"{record}.{name}") for name in names]


_COMMON = _plain(
    "time:t host_id:s host_name:s boot_id:s agent_id:s seq:i run_id:s pipeline:s task_id:s task:s sample:s"
)
_USAGE = _nested("usage", RESOURCES, "int64")
_WORK = [
    *_COMMON,
    *_plain(
        "phase:s name:s engine:s command:s start_time:t end_time:t attempt:i work_dir:s source:s confidence:f "
        "requested_cpus:f requested_memory_bytes:i wall_ns:i parallelism:f programs:i live_programs:i "
        "failed_programs:i lost_events:i exit_code:i exit_signal:i bound:s run_name:s scheduler:s job_id:s "
        "parent_run_id:s uid:i demand:s demand_confidence:f waiting_for:s denied:s denied_share:f "
        "memory_bytes:i peak_memory_bytes:i peak_memory_source:s energy_uj:i energy_source:s"
    ),
    *_USAGE,
    *_nested("shares", ("cpu", "run_delay", "block_io", "memory", "idle"), "float64", "share_"),
    *_nested("bill", BILL, "int64", "bill_"),
    *_nested("own_bill", BILL, "int64", "own_"),
]

KEY = ("host_id", "agent_id", "seq")
"""What a record has to itself in its topic: those that share it are one record, which was delivered more than once."""

KEY_SQL = ", ".join(KEY)

COLUMNS: dict[str, list[Column]] = {
    "program": [
        *_COMMON,
        *_plain(
            "phase:s pid:i ppid:i start_time:t program_start_time:t program_index:i program_id:s "
            "parent_program_id:s forked:b exe:s comm:s argv:as cwd:s tool:s uid:i cgroup:s container_id:s "
            "container_runtime:s container_name:s container_image:s k8s_pod_uid:s k8s_pod_name:s k8s_namespace:s "
            "k8s_container_name:s scheduler:s job_id:s job_step:s trace_id:s span_id:s overhead:b confidence:f "
            "observed_time:t end_time:t end_reason:s exit_code:i exit_signal:i core_dumped:b oom_killed:b"
        ),
        *_USAGE,
    ],
    "usage": [
        *_COMMON,
        *_plain("pid:i program_id:s program_start_time:t comm:s tool:s interval_ns:i"),
        *_USAGE,
    ],
    "task": list(_WORK),
    "run": list(_WORK),
    "host": [
        *_COMMON,
        *_plain(
            "interval_ns:i cpus:i memory_bytes:i memory_available_bytes:i processes:i cpu_capacity_ns:i cpu_busy_ns:i "
            "cpu_iowait_ns:i cpu_steal_ns:i cpu_attributed_ns:i cpu_unattributed_ns:i rss_attributed_bytes:i "
            "load1:f disk_read_bytes:i disk_write_bytes:i disk_read_attributed_bytes:i disk_write_attributed_bytes:i "
            "net_rx_bytes:i net_tx_bytes:i net_rx_attributed_bytes:i net_tx_attributed_bytes:i instance_type:s "
            "price_per_hour:f cloud:s region:s lifecycle:s cpu_model:s energy_uj:i energy_source:s "
            "energy_attributed_uj:i energy_unattributed_uj:i energy_idle_uj:i"
        ),
        *(c for r in ("psi_cpu", "psi_memory", "psi_io") for c in _nested(r, ("some", "full"), "float64", r + "_")),
    ],
    "finding": [
        *_COMMON,
        *_plain("kind:s severity:s program_id:s tool:s message:s"),
    ],
    "agent": [
        *_COMMON,
        *_plain("event:s version:s interval_ns:i spool_records:i delivered:i retried:i cpu_ns:i rss_bytes:i message:s"),
        Column("lost", "array<struct<place: string, reason: string, count: int64>>"),
    ],
}
"""Topic (without its `sluice.`) -> columns, in the order of the table."""

_UNREAD_ALWAYS = ("schema_version",)
_UNREAD_USAGE = tuple(f"usage.{name}" for name in _SPLIT)
_UNREAD_BILL = tuple(f"bill.{name}" for name in BILL)
_UNREAD_CGROUP = tuple(
    f"cgroup.{name}"
    for name in (
        "memory_peak_bytes", "oom_kills", "throttled_ns", "cpu_some_ns", "memory_some_ns", "memory_full_ns",
        "io_some_ns", "io_full_ns",
    )
)  # fmt: skip

UNREAD: dict[str, tuple[str, ...]] = {
    "program": (
        *_UNREAD_ALWAYS, *_UNREAD_USAGE, *_UNREAD_BILL, "argv_truncated", "tool_rule", "gid", "cgroup_v1", "pid_ns",
        "mnt_ns", "net_ns", "variables", "run_source", "task_source",
    ),
    "usage": (
        *_UNREAD_ALWAYS, *_UNREAD_USAGE, "ppid", "start_time", "program_index", "parent_program_id", "forked",
    ),
    "task": (*_UNREAD_ALWAYS, *_UNREAD_USAGE, *_UNREAD_CGROUP),
    "run": (*_UNREAD_ALWAYS, *_UNREAD_USAGE),
    "host": (*_UNREAD_ALWAYS, "kernel", "architecture", "swap_bytes", "swap_free_bytes", "threads"),
    "finding": (*_UNREAD_ALWAYS, "evidence", "causes"),
    "agent": (*_UNREAD_ALWAYS, "config_generation", "events", "lost_by_user", "probes", "spool_bytes", "spool_age_ns"),
}  # fmt: skip
"""Topic -> fields of its schema that no column reads, dots between nested names."""


def schema(topic: str) -> dict[str, str]:
    """Column name -> Ibis type, in order."""
    return {c.name: c.type for c in COLUMNS[topic]}
