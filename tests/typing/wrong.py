"""What mypy must refuse, a line each; the comment is the code of its error."""

import nsw

nsw.run("recipe.yaml", sit="local")  # call-arg
nsw.run("recipe.yaml", set=["gpus=1"])  # arg-type
print(nsw.open().tables.gpu_sumary)  # attr-defined
print(nsw.open().answers.hotspot)  # attr-defined
nsw.retry("campaign").wait()  # union-attr
for event in nsw.run("recipe.yaml"):
    print(event.run)  # union-attr
nsw.read("report", tables=1)  # arg-type
nsw.attach()  # call-arg
nsw.open().clean(True)  # call-arg
nsw.rum("recipe.yaml")  # attr-defined
