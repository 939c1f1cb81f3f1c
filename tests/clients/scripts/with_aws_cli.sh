set -eu
job="from-cli-$(date +%s)"
account=$(aws sts get-caller-identity --query Account --output text)

aws s3 mb s3://my-bucket
aws s3 sync data s3://my-bucket/train
tar -czf sourcedir.tar.gz -C src train.py
aws s3 cp sourcedir.tar.gz s3://my-bucket/code/
aws s3 ls --recursive s3://my-bucket

aws sagemaker create-training-job \
    --training-job-name "$job" \
    --role-arn "arn:aws:iam::$account:role/MyRole" \
    --algorithm-specification '{
        "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.29.0-ubuntu24.04",
        "TrainingInputMode": "File"}' \
    --hyper-parameters '{
        "sagemaker_program": "\"train.py\"",
        "sagemaker_submit_directory": "\"s3://my-bucket/code/sourcedir.tar.gz\"",
        "epochs": "2"}' \
    --input-data-config '[{"ChannelName": "train", "DataSource": {"S3DataSource": {
        "S3DataType": "S3Prefix", "S3Uri": "s3://my-bucket/train"}}}]' \
    --output-data-config S3OutputPath=s3://my-bucket/output \
    --resource-config InstanceType=ml.trn1.2xlarge,InstanceCount=1,VolumeSizeInGB=30 \
    --stopping-condition MaxRuntimeInSeconds=600
while aws sagemaker describe-training-job --training-job-name "$job" \
    --query TrainingJobStatus --output text | grep InProgress; do sleep 5; done
aws sagemaker wait training-job-completed-or-stopped --training-job-name "$job"
aws sagemaker list-training-jobs --status-equals Completed --query 'TrainingJobSummaries[].TrainingJobName'

group=/aws/sagemaker/TrainingJobs
stream=$(aws logs describe-log-streams --log-group-name $group --log-stream-name-prefix "$job" \
    --query 'logStreams[0].logStreamName' --output text)
aws logs get-log-events --log-group-name $group --log-stream-name "$stream" --start-from-head \
    --query 'events[].message' | grep epoch

model=$(aws sagemaker describe-training-job --training-job-name "$job" \
    --query ModelArtifacts.S3ModelArtifacts --output text)
aws s3 cp "$model" .
curl --silent --show-error --fail --output signed.tar.gz "$(aws s3 presign "$model" --expires-in 60)"
cmp model.tar.gz signed.tar.gz
tar -tzf model.tar.gz
