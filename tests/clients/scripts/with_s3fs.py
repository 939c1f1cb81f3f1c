import s3fs

files = s3fs.S3FileSystem()
files.mkdir("s3://my-data")
with files.open("s3://my-data/a.csv", "w") as file:
    file.write("x,y\n1,2\n3,4\n")
print(files.cat("s3://my-data/a.csv").decode())
