"""A table of Spark as TFRecord files, and the files as a table.

Needs ``pip install 'tfwire[spark]'`` and Java 17. Writes the folder ``pets`` here.
"""

from pyspark.sql import SparkSession, functions

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

pets = [("cat", 4.5, ["small", "indoor"]), ("dog", 31.0, ["loyal"]), ("hen", 2.1, None)]
table = spark.createDataFrame(pets, "name string, weight float, tags array<string>")
table.write.format("tfrecord").mode("overwrite").save("pets")

# With a schema, Spark reads these columns alone; without one, tfwire looks at the first records.
light = spark.read.format("tfrecord").schema("name string, weight float").load("pets")
for row in light.where(functions.col("weight") < 10).orderBy("name").collect():
    print(row)  # Row(name='cat', weight=4.5), Row(name='hen', weight=2.0999999046325684)
spark.stop()
