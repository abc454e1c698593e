import io
import os
import sys

import django
from django.conf import settings
from django.core.management import call_command
from matrix import section, show

settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": "lake", "USER": "postgres", "HOST": "127.0.0.1", "PORT": os.environ["PGPORT"],
        "OPTIONS": {"options": "-c search_path=shop,public"},
    }},
    INSTALLED_APPS=[], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402

with section("inspectdb"):
    out = io.StringIO()
    call_command("inspectdb", stdout=out)
    print(out.getvalue())
with section("introspection"):
    with connection.cursor() as cur:
        i = connection.introspection
        print(sorted(i.get_table_list(cur)))
        for t in ("customers", "orders"):
            print([(d.name, d.type_code if d.name in ("tags", "ints") else i.get_field_type(d.type_code, d), d.null_ok, d.internal_size, d.precision, d.scale) for d in i.get_table_description(cur, t)])
            print(i.get_primary_key_columns(cur, t), i.get_relations(cur, t), i.get_sequences(cur, t))
            print(sorted((n, c["columns"], c["primary_key"], c["unique"], c.get("type")) for n, c in i.get_constraints(cur, t).items()))
with section("check"):
    connection.check_constraints()
    print(connection.pg_version // 10000)


class Order(models.Model):
    id = models.IntegerField(primary_key=True)
    line = models.IntegerField()
    total = models.DecimalField(max_digits=10, decimal_places=2)
    at = models.DateTimeField()

    class Meta:
        app_label, managed, db_table = "x", False, "orders"


class Load(models.Model):
    id = models.BigIntegerField(primary_key=True)
    v = models.TextField(null=True)
    n = models.DecimalField(max_digits=10, decimal_places=2, null=True)

    class Meta:
        app_label, managed, db_table = "x", False, "loads"


with section("queries"):
    orders = Order.objects
    print(orders.count(), orders.filter(id__lt=5).aggregate(models.Sum("total"), models.Avg("id")))
    show(orders.filter(line=1, total__gte=60).order_by("-id").values_list("id", "total", "at"))
    show(orders.annotate(day=models.functions.TruncDay("at")).values("day").annotate(n=models.Count("*")).order_by("day").values_list("day", "n"))
    print(orders.filter(at__year=2024, at__hour=3).exists(), orders.filter(id=10**6).first())
    print(sum(1 for _ in orders.order_by("id", "line").iterator(chunk_size=7)))
with section("search"):
    from django.db.models.functions import Lower
    show(orders.extra(select={"x": "1"}).order_by("id", "line").values_list("id", "x")[:1])
    print(Load.objects.filter(v__icontains="A", v__iregex="^a").annotate(l=Lower("v")).count())
with section("explain"):
    print(len(orders.filter(id=1).explain()) > 0)
with section("write"):
    with transaction.atomic():
        Load.objects.create(id=1, v="a", n="1.50")
        Load.objects.bulk_create([Load(id=i, v=f"v{i}") for i in range(2, 5)])
        Load.objects.bulk_create([Load(id=2, v="twice")], update_conflicts=True, unique_fields=["id"], update_fields=["v"])
        print(Load.objects.filter(id__gt=2).update(v=models.functions.Concat("v", models.Value("!"))))
        try:
            with transaction.atomic():
                Load.objects.create(id=1)
        except django.db.IntegrityError as e:
            print(str(e).splitlines())
        print(Load.objects.get_or_create(id=9, defaults={"v": "nine"})[1])
        Load.objects.filter(id=9).delete()
    show(Load.objects.order_by("id").values_list("id", "v", "n"))
    Load.objects.all().delete()
