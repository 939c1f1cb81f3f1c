import awswrangler

frame = awswrangler.s3.read_csv("s3://my-data/a.csv")
awswrangler.s3.to_parquet(frame, "s3://my-data/awswrangler/", dataset=True)
print(awswrangler.s3.read_parquet("s3://my-data/awswrangler/", dataset=True).y.sum())
