import smart_open

with smart_open.open("s3://my-data/smart_open/a.txt.gz", "w") as file:
    file.write("hello")
print(smart_open.open("s3://my-data/smart_open/a.txt.gz").read())
