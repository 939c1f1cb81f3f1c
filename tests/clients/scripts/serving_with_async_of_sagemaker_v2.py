from sagemaker import Session
from sagemaker.async_inference import AsyncInferenceConfig, WaiterConfig
from sagemaker.deserializers import JSONDeserializer
from sagemaker.pytorch import PyTorchModel
from sagemaker.serializers import JSONSerializer

session = Session()
model = PyTorchModel(
    model_data=session.upload_data("model.tar.gz", key_prefix="models"),
    role="MyRole",
    source_dir="code",
    entry_point="inference.py",
    framework_version="1.12.0",
    py_version="py38",
    sagemaker_session=session,
)
predictor = model.deploy(
    async_inference_config=AsyncInferenceConfig(),
    initial_instance_count=1,
    instance_type="ml.c5.xlarge",
    serializer=JSONSerializer(),
    deserializer=JSONDeserializer(),
)
print(predictor.predict({"inputs": [[1, 2], [3, 4]]}, waiter_config=WaiterConfig(delay=1)))
print(predictor.predict_async({"inputs": [[5, 6]]}).get_result(WaiterConfig(delay=1)))
predictor.delete_model()
predictor.delete_endpoint()
