import pandas

frame = pandas.read_csv("s3://my-data/a.csv")
frame.to_parquet("s3://my-data/pandas/a.parquet")
print(pandas.read_parquet("s3://my-data/pandas/a.parquet").y.sum())
