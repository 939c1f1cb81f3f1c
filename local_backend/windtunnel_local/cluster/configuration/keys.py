"""All keys of ParallelCluster 3's cluster configuration: what each takes, whether it has an effect here, and when an
update may change it on AWS. Source: `cluster_schema.py` and the validators of aws-parallelcluster 3.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .key import Change, Key, each, section, several, texts

OSES = (
    "alinux2",
    "alinux2023",
    "ubuntu2004",
    "ubuntu2204",
    "ubuntu2404",
    "rhel8",
    "rocky8",
    "rhel9",
    "rocky9",
)
"""Operating systems of ParallelCluster 3. The nodes here always run Debian; the choice decides the user's name."""

REGIONS = (
    "af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1",
    "ap-southeast-2", "ap-southeast-3", "ca-central-1", "cn-north-1", "cn-northwest-1", "eu-central-1",
    "eu-north-1", "eu-south-1", "eu-west-1", "eu-west-2", "eu-west-3", "il-central-1", "me-south-1", "sa-east-1",
    "us-east-1", "us-east-2", "us-gov-east-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "us-west-1",
    "us-west-2",
)  # fmt: skip

MOUNT_DIR = r"/?[^/.\\][^/\\]*(/[^/.\\][^/]*)*"
_SUBNET = r"subnet-([0-9a-z]{8}|[0-9a-z]{17})"
_GROUP = r"sg-([0-9a-z]{8}|[0-9a-z]{17})"
_AMI = Key(pattern=r"ami-([0-9a-z]{8}|[0-9a-z]{17})")

TEXT, FLAG, WHOLE = Key(), Key("flag"), Key("whole")
_NEEDED = Key(required=True)
_NAME = Key(effect=True, required=True)
_ANY_TIME = Key(change="always")
_DELETION = Key(change="always", choices=("Delete", "Retain"))

_PROXY = section(HttpProxyAddress=TEXT)
_DCV = section(Enabled=FLAG, Port=WHOLE, AllowedIps=_ANY_TIME)
_PLACEMENT = section(Enabled=FLAG, Id=TEXT, Name=TEXT)
_RESERVATION = section(CapacityReservationId=TEXT, CapacityReservationResourceGroupArn=TEXT)
_HEALTH = section(Gpu=section(Enabled=FLAG), change="always")
_TAGS = each("Key", Key=_NEEDED, Value=_NEEDED)
_SLURM = Key("settings", effect=True, change="always")
_PRIORITY = Key("whole", effect=True, change="always", least=1, most=2**32 - 1)
_SCRIPT = {"Script": TEXT, "Args": texts()}
_ACTION = section(_SCRIPT, Sequence=each("Script", _SCRIPT))
_ACTIONS = {"OnNodeStart": _ACTION, "OnNodeConfigured": _ACTION}
_GROUPS = several(texts(_GROUP, change="always"), "SecurityGroups AdditionalSecurityGroups")


def _storage(**root: Key) -> Key:
    volume = {"VolumeType": TEXT, "Encrypted": FLAG, **several(WHOLE, "Size Iops Throughput")}
    return section(RootVolume=section(volume, root), EphemeralVolume=section(MountDir=Key(pattern=MOUNT_DIR)))


def _iam(profile: Change, more: Mapping[str, Key]) -> Key:
    return section(
        more,
        InstanceRole=TEXT,
        InstanceProfile=Key(change=profile),
        AdditionalIamPolicies=each("Policy", Policy=_NEEDED),
        change="always",
    )


_BUCKETS = {"S3Access": each("BucketName", BucketName=_NEEDED, KeyName=TEXT, EnableWriteAccess=FLAG)}

HEAD_NODE = section(
    InstanceType=Key(effect=True, required=True, pattern=r"[a-z0-9-]+\.[a-z0-9-]+"),
    DisableSimultaneousMultithreading=FLAG,
    Networking=section(
        _GROUPS,
        required=True,
        SubnetId=Key(required=True, pattern=_SUBNET),
        ElasticIp=Key("any"),
        Proxy=_PROXY,
    ),
    Ssh=section(KeyName=TEXT, AllowedIps=_ANY_TIME),
    LocalStorage=_storage(DeleteOnTermination=FLAG),
    SharedStorageType=Key(choices=("Ebs", "Efs")),
    Dcv=_DCV,
    CustomActions=section(_ACTIONS, OnNodeUpdated=replace(_ACTION, change="always")),
    Iam=_iam("never", _BUCKETS),
    Imds=section(Secured=FLAG),
    Image=section(CustomAmi=_AMI),
    required=True,
)

COMPUTE_RESOURCES = each(
    "Name",
    Name=_NAME,
    InstanceType=Key(effect=True, change="stopped"),
    Instances=each("InstanceType", InstanceType=_NAME, change="growing"),
    MinCount=Key("whole", effect=True, change="growing", least=0),
    MaxCount=Key("whole", effect=True, change="growing", least=1),
    Efa=section(Enabled=Key("flag", effect=True), GdrSupport=FLAG),
    SpotPrice=Key("number", least=0),
    DisableSimultaneousMultithreading=Key("flag", change="stopped"),
    SchedulableMemory=WHOLE,
    CapacityReservationTarget=_RESERVATION,
    Networking=section(PlacementGroup=_PLACEMENT),
    HealthChecks=_HEALTH,
    CustomSlurmSettings=_SLURM,
    Tags=_TAGS,
    StaticNodePriority=_PRIORITY,
    DynamicNodePriority=_PRIORITY,
    required=True,
    change="growing",
)

QUEUES = each(
    "Name",
    Name=_NAME,
    CapacityType=Key(effect=True, choices=("ONDEMAND", "SPOT", "CAPACITY_BLOCK")),
    ComputeResources=COMPUTE_RESOURCES,
    Networking=section(
        _GROUPS,
        required=True,
        SubnetIds=texts(_SUBNET, required=True),
        AssignPublicIp=Key("flag", change="never"),
        PlacementGroup=_PLACEMENT,
        Proxy=_PROXY,
    ),
    AllocationStrategy=Key(choices=("lowest-price", "capacity-optimized", "price-capacity-optimized")),
    ComputeSettings=section(LocalStorage=_storage()),
    CustomActions=section(_ACTIONS),
    Iam=_iam("stopped", _BUCKETS),
    Image=section(CustomAmi=_AMI),
    CapacityReservationTarget=_RESERVATION,
    HealthChecks=_HEALTH,
    CustomSlurmSettings=_SLURM,
    Tags=_TAGS,
    JobExclusiveAllocation=Key("flag", effect=True, change="always"),
    required=True,
    change="growing",
)

SLURM_SETTINGS = section(
    ScaledownIdletime=Key("whole", effect=True, least=-1),
    QueueUpdateStrategy=Key(
        effect=True, change="always", choices=("COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE")
    ),
    CustomSlurmSettings=Key("list", of=_SLURM, change="always"),
    CustomSlurmSettingsIncludeFile=_ANY_TIME,
    EnableMemoryBasedScheduling=FLAG,
    Dns=section(DisableManagedDns=FLAG, HostedZoneId=TEXT, UseEc2Hostnames=FLAG, change="never"),
    Database=section(Uri=_NEEDED, UserName=_NEEDED, PasswordSecretArn=_NEEDED, DatabaseName=_ANY_TIME),
    MungeKeySecretArn=TEXT,
    ExternalSlurmdbd=section(Host=_NEEDED, Port=WHOLE, change="always"),
    change="stopped",
)

SHARED_STORAGE = each(
    "Name",
    Name=_NAME,
    MountDir=Key(effect=True, required=True, pattern=MOUNT_DIR, change="strategy"),
    StorageType=Key(
        effect=True, required=True, choices=("Ebs", "Efs", "FsxLustre", "FsxOpenZfs", "FsxOntap", "FileCache")
    ),
    EbsSettings=section(
        several(TEXT, "VolumeType KmsKeyId SnapshotId VolumeId"),
        several(Key("whole", change="always"), "Iops Throughput"),
        Size=WHOLE,
        Encrypted=FLAG,
        Raid=section(
            Type=Key("whole", required=True, least=0, most=1),
            NumberOfVolumes=Key("whole", least=2, most=5),
        ),
        DeletionPolicy=Key(change="always", choices=("Delete", "Retain", "Snapshot")),
    ),
    EfsSettings=section(
        several(TEXT, "KmsKeyId PerformanceMode FileSystemId AccessPointId"),
        several(FLAG, "Encrypted EncryptionInTransit IamAuthorization"),
        ThroughputMode=Key(change="always", choices=("provisioned", "bursting")),
        ProvisionedThroughput=Key("whole", change="always", least=1, most=1024),
        DeletionPolicy=_DELETION,
    ),
    FsxLustreSettings=section(
        several(TEXT, "ExportPath ImportPath BackupId KmsKeyId FileSystemId AutoImportPolicy DriveCacheType"),
        several(_ANY_TIME, "WeeklyMaintenanceStartTime DailyAutomaticBackupStartTime DataCompressionType"),
        several(WHOLE, "StorageCapacity ImportedFileChunkSize PerUnitStorageThroughput"),
        AutomaticBackupRetentionDays=Key("whole", change="always", least=0, most=35),
        CopyTagsToBackups=FLAG,
        DeploymentType=Key(choices=("SCRATCH_1", "SCRATCH_2", "PERSISTENT_1", "PERSISTENT_2")),
        StorageType=Key(choices=("HDD", "SSD")),
        DeletionPolicy=_DELETION,
        DataRepositoryAssociations=each(
            "Name",
            several(_NEEDED, "Name DataRepositoryPath FileSystemPath"),
            several(texts(change="always"), "AutoExportPolicy AutoImportPolicy"),
            BatchImportMetaDataOnCreate=FLAG,
            ImportedFileChunkSize=Key("whole", change="always", least=1, most=512_000),
            change="always",
        ),
    ),
    FsxOpenZfsSettings=section(VolumeId=_NEEDED),
    FsxOntapSettings=section(VolumeId=_NEEDED),
    FileCacheSettings=section(FileCacheId=_NEEDED),
    change="strategy",
)

LOGIN_NODES = section(
    Pools=each(
        "Name",
        Name=_NEEDED,
        InstanceType=_NEEDED,
        Count=Key("whole", required=True, least=0),
        Networking=section(_GROUPS, required=True, SubnetIds=texts(_SUBNET, required=True), Proxy=_PROXY),
        Image=section(CustomAmi=_AMI),
        Dcv=_DCV,
        Ssh=section(KeyName=TEXT, AllowedIps=TEXT),
        CustomActions=section(_ACTIONS, OnNodeUpdated=_ACTION),
        Iam=_iam("always", {}),
        GracetimePeriod=Key("whole", least=3, most=120),
        required=True,
    ),
    change="always",  # none runs here
)

MONITORING = section(
    DetailedMonitoring=Key("flag", change="stopped"),
    Logs=section(
        CloudWatch=section(
            Enabled=FLAG, RetentionInDays=Key("whole", change="always"), DeletionPolicy=_DELETION
        ),
        Rotation=section(Enabled=FLAG),
    ),
    Dashboards=section(CloudWatch=section(Enabled=FLAG), change="always"),
    Alarms=section(Enabled=FLAG, change="always"),
)

CLUSTER = section(
    Region=Key(effect=True, choices=REGIONS),
    Image=section(Os=Key(effect=True, required=True, choices=OSES), CustomAmi=_AMI, required=True),
    HeadNode=HEAD_NODE,
    Scheduling=section(
        Scheduler=Key(effect=True, required=True, choices=("slurm",)),
        ScalingStrategy=Key(
            change="always", choices=("all-or-nothing", "best-effort", "greedy-all-or-nothing")
        ),
        SlurmSettings=SLURM_SETTINGS,
        SlurmQueues=QUEUES,
        required=True,
    ),
    SharedStorage=SHARED_STORAGE,
    LoginNodes=LOGIN_NODES,
    Monitoring=MONITORING,
    AdditionalPackages=section(IntelSoftware=section(IntelHpcPlatform=FLAG)),
    Tags=each("Key", Key=_NAME, Value=_NAME),
    Iam=section(
        Roles=section(LambdaFunctionsRole=TEXT),
        PermissionsBoundary=TEXT,
        ResourcePrefix=Key(change="never"),
        change="always",
    ),
    DirectoryService=section(
        several(_NEEDED, "DomainName DomainAddr PasswordSecretArn DomainReadOnlyUser"),
        several(TEXT, "LdapTlsCaCert LdapAccessFilter"),
        LdapTlsReqCert=Key(choices=("never", "allow", "try", "demand", "hard")),
        GenerateSshKeysForUsers=FLAG,
        AdditionalSssdConfigs=Key("settings"),
        change="stopped",
    ),
    Imds=section(ImdsSupport=Key(choices=("v1.0", "v2.0"))),
    CustomS3Bucket=TEXT,
    AdditionalResources=_ANY_TIME,
    DevSettings=Key("settings", change="always"),
    DeploymentSettings=section(
        LambdaFunctionsVpcConfig=section(
            SecurityGroupIds=texts(_GROUP, required=True), SubnetIds=texts(_SUBNET, required=True)
        ),
        DisableSudoAccessForDefaultUser=Key("flag", change="stopped"),
        DefaultUserHome=Key(choices=("Shared", "Local")),
    ),
    change="never",
)
"""The whole file."""
