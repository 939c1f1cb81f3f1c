import os

from pyarrow import csv, fs, parquet

files = fs.S3FileSystem(endpoint_override=os.environ["AWS_ENDPOINT_URL"])
table = csv.read_csv(files.open_input_stream("my-data/a.csv"))
parquet.write_table(table, "my-data/pyarrow/a.parquet", filesystem=files)
print(parquet.read_table("s3://my-data/pyarrow/a.parquet")["y"].to_pylist())
