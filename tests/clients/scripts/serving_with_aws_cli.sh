set -eu
name="from-cli-$(date +%s)"
image=763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference:2.6.0-cpu-py312-ubuntu22.04-sagemaker

aws s3 mb s3://models-of-cli
aws s3 cp with-code.tar.gz s3://models-of-cli/model.tar.gz

aws sagemaker create-model --model-name "$name" \
    --execution-role-arn arn:aws:iam::000000000000:role/MyRole \
    --primary-container "Image=$image,ModelDataUrl=s3://models-of-cli/model.tar.gz,Environment={SAGEMAKER_PROGRAM=inference.py}"
aws sagemaker create-endpoint-config --endpoint-config-name "$name" --production-variants \
    "VariantName=AllTraffic,ModelName=$name,InstanceType=ml.c5.xlarge,InitialInstanceCount=1"
aws sagemaker create-endpoint --endpoint-name "$name" --endpoint-config-name "$name"
aws sagemaker wait endpoint-in-service --endpoint-name "$name"

echo '{"inputs": [[1, 2], [3, 4]]}' > question.json
aws sagemaker-runtime invoke-endpoint --endpoint-name "$name" --content-type application/json \
    --body fileb://question.json answer.json
cat answer.json && echo

aws sagemaker delete-endpoint --endpoint-name "$name"
aws sagemaker delete-endpoint-config --endpoint-config-name "$name"
aws sagemaker delete-model --model-name "$name"
