"""A cluster's YAML file: what is read, and each mistake with its line."""

from __future__ import annotations

import pytest

from tests.fakes.cluster import POST
from windtunnel_local.cluster.configuration import ComputeResource, Queue, SharedFolder, read, read_all
from windtunnel_local.cluster.errors import InvalidConfiguration

BOMB = "a: &b0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"b{n}: &b{n} [{','.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
"""A small file with more values than memory holds."""
QUEUE = POST[POST.index("    - Name: compute1") : POST.index("SharedStorage")]
RESOURCE = QUEUE[QUEUE.index("        - Name: queue1-i1") : QUEUE.index("      Networking")]
FOLDER = POST[POST.index("  - Name: pclusterfsx") :]


def line_of(text: str, words: str) -> int:
    """The first line that holds these words, from 1."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidConfiguration) as refused:
        read(text, "cluster.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_the_file_of_the_post_is_read() -> None:
    """Queues, counts, instance type and shared folder are those of the file."""
    found = read(POST, "cluster.yaml")
    assert (found.region, found.os, found.head_instance_type) == ("us-west-2", "ubuntu2004", "c5.4xlarge")
    resource = ComputeResource("queue1-i1", "trn1.32xlarge", min_count=1, max_count=16, efa=True)
    assert found.queues == (Queue("compute1", "ONDEMAND", (resource,)),)
    assert found.shared_storage == (SharedFolder("pclusterfsx", "/fsx", "FsxLustre"),)
    assert found.scaledown_idletime_minutes == 10


def test_nodes_are_named_as_on_aws() -> None:
    """Static nodes are counted from 1, and dynamic ones from 1 again."""
    names = [(node.name, node.static) for _, _, node in read(POST, "cluster.yaml").nodes()]
    assert names[:2] == [("compute1-st-queue1-i1-1", True), ("compute1-dy-queue1-i1-1", False)]
    assert names[-1] == ("compute1-dy-queue1-i1-15", False)
    assert len(names) == 16


def test_keys_without_effect_are_named_once() -> None:
    """A key that two queues have is said once, and none that has an effect."""
    text = POST.replace(QUEUE, QUEUE + QUEUE.replace("compute1", "compute2"))
    named = read(text, "cluster.yaml").without_effect
    assert len(named) == len(set(named))
    assert "Scheduling.SlurmQueues.Networking.SubnetIds" in named
    assert "HeadNode.CustomActions.OnNodeConfigured.Script" in named
    assert not {"Region", "Image.Os", "HeadNode.InstanceType", "SharedStorage.MountDir"} & set(named)
    assert not [key for key in named if "ComputeResources" in key]


def test_a_cluster_needs_little() -> None:
    """Counts, capacity type and region have ParallelCluster's defaults."""
    text = """\
Image: {Os: alinux2}
HeadNode: {InstanceType: t3.large, Networking: {SubnetId: subnet-01234567}}
Scheduling:
  Scheduler: slurm
  SlurmQueues:
    - Name: q
      ComputeResources: [{Name: c, InstanceType: trn1.2xlarge}]
      Networking: {SubnetIds: [subnet-01234567]}
"""
    found = read(text, "cluster.yaml", "eu-west-1")
    resource = found.queues[0].compute_resources[0]
    assert (found.region, found.queues[0].capacity_type) == ("eu-west-1", "ONDEMAND")
    assert (resource.min_count, resource.max_count, resource.efa) == (0, 10, False)


MISTAKES = [
    # what is replaced, by what, words of the line that is named, words of the message
    (
        "Os: ubuntu2004",
        "Os: windows",
        "Os: windows",
        "Image/Os: 'windows' is not valid. Valid here: alinux2,",
    ),
    ("Os: ubuntu2004", "Os: ubuntu2003", "Os:", "Did you mean ubuntu2004"),
    (
        "          InstanceType: trn1.32xlarge\n",
        "",
        "Name: queue1-i1",
        "InstanceType or Instances must be given.",
    ),
    ("MinCount: 1", "MinCount: true", "MinCount", "MinCount: is True; it must be a whole number"),
    ("  Os: ubuntu2004", "  OS: ubuntu2004", "OS:", "Image/OS: unknown key. Did you mean Os?"),
    ("  Os: ubuntu2004", "  CustomAmi: ami-01234567", "Image:", "Image: Os is missing"),
    ("Region: us-west-2", "Region: us-west-9", "Region", "Did you mean us-west-"),
    ("Region: us-west-2", "Region: 7", "Region", "Region: is 7; it must be a text. Quote it"),
    ("Region: us-west-2", "Region:", "Region", "Region: has no value."),
    (
        "Region: us-west-2",
        "Region: us-west-2\nRegion: us-east-1",
        "us-east-1",
        "for the second time, first in line 1",
    ),
    (
        "Scheduler: slurm",
        "Scheduler: awsbatch",
        "Scheduler: a",
        "'awsbatch' is not valid. Valid here: slurm.",
    ),
    ("trn1.32xlarge", "trn1.33xlarge", "InstanceType: trn1", "'trn1.33xlarge' is not known"),
    ("trn1.32xlarge", "ml.trn1.32xlarge", "InstanceType: ml.", "no 'ml.' before it"),
    (
        "trn1.32xlarge",
        "trn1.2xlarge",
        "Enabled: true",
        "Efa/Enabled: trn1.2xlarge has no EFA: set it to false.",
    ),
    ("MinCount: 1", "MinCount: 17", "MinCount", "17 is more than MaxCount, 16."),
    ("MaxCount: 16", "Networking: {}", "MinCount: 11", "11 is more than MaxCount, 10 (its default)."),
    ("MinCount: 1", "MinCount: -1", "MinCount", "-1 is not valid: it must be at least 0."),
    ("MinCount: 1", "MinCount: many", "MinCount", "is 'many'; it must be a whole number."),
    ("MinCount: 1", "MinCount: 1.5", "MinCount", "is 1.5; it must be a whole number."),
    ("MinCount: 1", "MinCount: [1]", "MinCount", "is a list; it must be a whole number."),
    ("MaxCount: 16", "MaxCount: 0", "MaxCount", "0 is not valid: it must be at least 1."),
    (
        "Enabled: true",
        "Enabled: maybe",
        "Enabled: maybe",
        "Efa/Enabled: is 'maybe'; it must be true or false.",
    ),
    ("Name: queue1-i1", "Name: Queue1", "Name: Queue1", "'Queue1' is no valid name"),
    ("Name: queue1-i1", "Name: default", "Name: default", "'default' is no valid name"),
    ("Name: queue1-i1", f"Name: {'q' * 26}", "Name: qq", "at most 25 characters"),
    ("CapacityType: ONDEMAND", "CapacityType: SPOTTY", "CapacityType", "Did you mean SPOT?"),
    (
        "CapacityType: ONDEMAND",
        "CapacityType: CAPACITY_BLOCK",
        "MinCount",
        "with CAPACITY_BLOCK they must be the same",
    ),
    ("InstanceType: c5.4xlarge", "InstanceType: large", "InstanceType: large", "'large' is not valid"),
    (
        "MaxCount: 16",
        "MaxCount: 10001",
        "SlurmQueues",
        "10,001 nodes may come by all MaxCount; at most 10,000",
    ),
    ("MountDir: /fsx", "MountDir: /etc", "MountDir: /etc", "/etc is reserved."),
    ("MountDir: /fsx", "MountDir: /etc/slurm", "MountDir: /etc", "/etc/slurm is reserved."),
    ("MountDir: /fsx", "MountDir: opt/windtunnel/keys", "MountDir: opt", "/opt/windtunnel/keys is reserved."),
    ("MountDir: /fsx", "MountDir: /dev/shm", "MountDir: /dev", "/dev/shm is reserved."),
    ("MountDir: /fsx", "MountDir: /opt/slurm/", "MountDir: /opt", "is not valid: it must match"),
    ("MountDir: /fsx", "MountDir: ../fsx", "MountDir: ..", "is not valid: it must match"),
    ("Name: pclusterfsx", "Name: ../../x", "../../x", "is no valid name"),
    ("FsxLustreSettings", "EfsSettings", "EfsSettings", "does not belong to StorageType FsxLustre."),
    ("SubnetIds:\n          - subnet-0123456789abcdef1", "SubnetIds: []", "SubnetIds", "is empty"),
    (
        "    - Name: compute1",
        "    - - Name: compute1",
        "Name: compute1",
        "is a list; it must be keys with values.",
    ),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), MISTAKES, ids=[row[1][:30] for row in MISTAKES])
def test_a_mistake_is_named_with_its_line(old: str, new: str, place: str, words: str) -> None:
    """What was given, where, and what is valid."""
    text = POST.replace(old, new, 1)
    if "its default" in words:
        text = text.replace("MinCount: 1", "MinCount: 11")
    if "- - Name" in new:
        text = text[: text.index("      CapacityType")] + text[text.index("SharedStorage") :]
    assert text != POST
    found = problems(text)
    line = line_of(text, place)
    assert [one for one in found if words in one and one.startswith(f"cluster.yaml:{line}: ")], found


def test_all_mistakes_are_named_at_once() -> None:
    """In the order of the file."""
    text = (
        POST.replace("us-west-2", "moon")
        .replace("trn1.32xlarge", "trn9.large")
        .replace("MinCount: 1", "MinCount: 99")
    )
    lines = [int(one.split(":")[1]) for one in problems(text)]
    assert lines == [line_of(text, words) for words in ("moon", "trn9", "MinCount")]


@pytest.mark.parametrize("block", [QUEUE, RESOURCE, FOLDER], ids=["queues", "resources", "shared folders"])
def test_names_are_unique(block: str) -> None:
    """The second of one name is named, with the line of the first."""
    text = POST.replace(block, block * 2)
    first = line_of(POST, block.splitlines()[0])
    second = first + len(block.splitlines())
    assert [
        one
        for one in problems(text)
        if f"cluster.yaml:{second}:" in one and f"is taken in line {first}." in one
    ]


def test_nodes_of_two_queues_have_two_names() -> None:
    """Of names with hyphens the same node may come out, and Slurm would not start."""
    one = QUEUE.replace("compute1", "q").replace("queue1-i1", "a-st-b")
    two = QUEUE.replace("compute1", "q-st-a").replace("queue1-i1", "b")
    text = POST.replace(QUEUE, one + two)
    assert ["nodes q-st-a-st-b-1, ... would be those of queue q" in said for said in problems(text)] == [True]


def test_mount_points_neither_repeat_nor_overlap() -> None:
    """As on AWS, where one would hide the other."""
    second = "\n  - {Name: other, StorageType: Efs, MountDir: PLACE}\n"
    assert "is mounted in line" in problems(POST + second.replace("PLACE", "fsx"))[0]
    assert "overlap" in problems(POST + second.replace("PLACE", "/fsx/below"))[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[{SuspendTime: 5}]", "SuspendTime: is set by the cluster itself."),
        ("[{NodeName: mine, CPUs: 4}]", "holds several settings"),
        ("[[a]]", "is a list; it must be names with values."),
        ('[{Prolog2: "a\\nb"}]', "must be one word with one value in one line."),
        ("[{Two Words: 1}]", "must be one word with one value in one line."),
    ],
)
def test_settings_of_slurm_are_lines_that_the_cluster_does_not_write(settings: str, words: str) -> None:
    """None of them may break slurm.conf, or what keeps the nodes."""
    text = POST.replace(
        "  Scheduler: slurm", f"  Scheduler: slurm\n  SlurmSettings: {{CustomSlurmSettings: {settings}}}"
    )
    assert words in problems(text)[0]


def test_settings_of_slurm_are_taken() -> None:
    """In their order."""
    settings = "{ScaledownIdletime: -1, CustomSlurmSettings: [{MaxArraySize: 99}, {DebugFlags: Dw}]}"
    text = POST.replace("Scheduler: slurm", f"Scheduler: slurm\n  SlurmSettings: {settings}")
    found = read(text, "cluster.yaml")
    assert found.custom_slurm_settings == (("MaxArraySize", "99"), ("DebugFlags", "Dw"))
    assert found.scaledown_idletime_minutes == -1


def test_nodes_have_priorities() -> None:
    """Static nodes get a job before dynamic ones, unless the file says otherwise."""
    resource = read(POST, "cluster.yaml").queues[0].compute_resources[0]
    assert (resource.static_priority, resource.dynamic_priority) == (1, 1000)
    text = POST.replace("MinCount: 1", "StaticNodePriority: 7\n          DynamicNodePriority: 3")
    resource = read(text, "cluster.yaml").queues[0].compute_resources[0]
    assert (resource.static_priority, resource.dynamic_priority) == (7, 3)


def test_a_mapping_takes_the_keys_of_others() -> None:
    """YAML's `<<`: its own keys count before those of the first, and these before those of the second."""
    second = (
        "          Efa: {Enabled: false}\n        - <<: [{MaxCount: 7}, *first]\n          Name: i2\n"
        "          MinCount: 5\n"
    )
    text = POST.replace("- Name: queue1-i1", "- &first\n          Name: queue1-i1").replace(
        "          Efa:\n            Enabled: true\n", second
    )
    first, other = read(text, "cluster.yaml").queues[0].compute_resources
    assert (first.name, first.min_count, first.max_count) == ("queue1-i1", 1, 16)
    assert (other.name, other.min_count, other.max_count) == ("i2", 5, 7)
    assert other.instance_type == first.instance_type


def test_of_several_instance_types_the_first_stands_for_all() -> None:
    """ParallelCluster's Instances; with InstanceType beside it the file is refused."""
    text = POST.replace(
        "InstanceType: trn1.32xlarge",
        "Instances: [{InstanceType: trn1.2xlarge}, {InstanceType: trn1.32xlarge}]",
    )
    assert read(text, "cluster.yaml").queues[0].compute_resources[0].instance_type == "trn1.2xlarge"
    both = POST.replace("MinCount: 1", "Instances: [{InstanceType: trn1.2xlarge}]")
    assert "either InstanceType or Instances" in problems(both)[0]


def test_what_aws_would_refuse_and_this_machine_not_is_a_warning() -> None:
    """A placeholder for a subnet, and an instance type without NeuronCores."""
    text = POST.replace("subnet-0123456789abcdef0", "subnet-<PUBLIC>").replace(
        "trn1.32xlarge", "p4d.24xlarge"
    )
    warnings = read_all(text, "cluster.yaml").warnings
    assert [warning.line for warning in warnings] == [line_of(text, "<PUBLIC>"), line_of(text, "p4d")]
    assert "no NeuronCores" in warnings[1].text
    assert read_all(POST, "cluster.yaml").warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("- a\n", "the file must hold keys with values"),
        ("a: [1, 2\n", "cluster.yaml:2: no valid YAML"),
        ("a: b: c\n", "no valid YAML"),
        ("a: 1\n---\nb: 2\n", "no valid YAML"),
        ("Region: &r [*r]\n", "hold itself"),
        ("Region: !!python/object:os.system x\n", "has no meaning in a configuration"),
        ("? [a]\n: 1\n", "a key must be a word"),
        ("Region: !!int x\n", "'x' is no int"),
        ("a: \x07\n", "no valid YAML"),
        ("[" * 1000, "nested too deep"),
        (BOMB, "more than 20000 values"),
        (f"# {'x' * 10_000_000}", "more than 262,144 characters"),
        ("Image: {<<: us-east-1}\n", "`<<` takes a mapping"),
        ("Image: &i {<<: *i}\n", "hold itself"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_refused_in_a_sentence(text: str, words: str) -> None:
    """No traceback, and no time or memory without end, whatever the file holds."""
    assert words in "\n".join(problems(text))
