import datasets

rows = datasets.load_dataset("csv", data_files="s3://my-data/a.csv", split="train")
rows.save_to_disk("s3://my-data/datasets/a")
print(datasets.load_from_disk("s3://my-data/datasets/a")["y"][:])
