import java.sql.*;
import java.util.*;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.core.api.output.*;

/** Runs Flyway's commands over the migrations of testdata/flyway, whose path is the argument. */
public class Migrations {
  interface Run {
    Object run() throws Exception;
  }

  static String url, files;

  /** Errors are among the answers: migrations that fail are expected. */
  static void section(String name, Run r) {
    System.out.println("## " + name);
    try {
      System.out.println(r.run());
    } catch (FlywayException e) {
      System.out.println("refused: " + plain(e.getMessage()));
    } catch (Exception e) {
      System.out.println("FAILED " + e);
    }
  }

  static String plain(String s) {
    return s.replace(files, "FILES").replaceAll("127.0.0.1:\\d+", "HOST").replaceAll("(?m)[ \\t]+$", "");
  }

  static FluentConfiguration of(String schema, String... directories) {
    String[] places = Arrays.stream(directories).map(d -> "filesystem:" + files + "/" + d).toArray(String[]::new);
    return Flyway.configure().dataSource(url, "postgres", "unused").schemas(schema).locations(places).cleanDisabled(false);
  }

  static String migrate(FluentConfiguration c) {
    MigrateResult r = c.load().migrate();
    StringBuilder b = new StringBuilder();
    b.append(r.success + " " + r.initialSchemaVersion + " to " + r.targetSchemaVersion + ", " + r.migrationsExecuted + " " + r.warnings + "\n");
    for (MigrateOutput m : r.migrations) b.append(m.category + " " + m.version + " " + m.description + " " + m.type + "\n");
    return b.toString();
  }

  static String info(FluentConfiguration c) {
    StringBuilder b = new StringBuilder();
    for (MigrationInfo m : c.load().info().all()) {
      b.append(m.getVersion() + " " + m.getDescription() + " " + m.getState() + " " + m.getChecksum() + " " + m.getInstalledRank() + " " + m.getInstalledBy() + "\n");
    }
    return b.toString();
  }

  static String validate(FluentConfiguration c) {
    ValidateResult r = c.load().validateWithResult();
    StringBuilder b = new StringBuilder(r.validationSuccessful + " " + r.validateCount + "\n");
    for (ValidateOutput o : r.invalidMigrations) b.append(o.version + " " + o.errorDetails.errorMessage.replaceAll("\\s+", " ") + "\n");
    return b.toString();
  }

  static String query(String... queries) throws SQLException {
    StringBuilder b = new StringBuilder();
    try (Connection c = DriverManager.getConnection(url, "postgres", "unused"); Statement s = c.createStatement()) {
      for (String q : queries) {
        ResultSet r = s.executeQuery(q);
        int n = r.getMetaData().getColumnCount();
        while (r.next()) {
          StringJoiner j = new StringJoiner(" | ");
          for (int i = 1; i <= n; i++) j.add(r.getString(i));
          b.append(j).append("\n");
        }
      }
    }
    return b.toString();
  }

  static void exec(String... statements) throws SQLException {
    try (Connection c = DriverManager.getConnection(url, "postgres", "unused"); Statement s = c.createStatement()) {
      for (String q : statements) s.execute(q);
    }
  }

  /** Several migrate at once: one does the work, the others wait for it and find it done. */
  static String atOnce(boolean transactionalLock) throws Exception {
    exec("DROP SCHEMA IF EXISTS fly CASCADE");
    List<String> out = Collections.synchronizedList(new ArrayList<>());
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      Thread t = new Thread(() -> {
        FluentConfiguration c = of("fly", "main", "more");
        c.configuration(Map.of("flyway.postgresql.transactional.lock", String.valueOf(transactionalLock)));
        try {
          out.add("" + c.load().migrate().migrationsExecuted);
        } catch (RuntimeException e) {
          out.add(plain(e.toString()));
        }
      });
      all.add(t);
      t.start();
    }
    for (Thread t : all) t.join();
    Collections.sort(out);
    return out + "\n" + query("SELECT version, success FROM fly.flyway_schema_history ORDER BY installed_rank",
        "SELECT locktype FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND granted");
  }

  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    files = a[0];
    url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/lake?sslmode=disable";
    section("info of nothing", () -> info(of("fly", "main")));
    section("migrate", () -> migrate(of("fly", "main")));
    section("info", () -> info(of("fly", "main")));
    section("validate", () -> validate(of("fly", "main")));
    section("migrate again", () -> migrate(of("fly", "main")));
    section("rows", () -> query(
        "SELECT id, email, name, is_active, settings, phone, age, nickname, updated_at IS NULL FROM fly.users ORDER BY id",
        "SELECT * FROM fly.goods ORDER BY 1", "SELECT * FROM fly.orders ORDER BY 1", "SELECT * FROM fly.order_totals ORDER BY 1",
        "SELECT * FROM fly.summary ORDER BY 1"));
    section("shape", () -> query(
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE table_schema = 'fly' ORDER BY 1, ordinal_position",
        "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'fly'::regnamespace ORDER BY conrelid::regclass::text COLLATE \"C\", 2",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'fly' ORDER BY indexname COLLATE \"C\""));
    section("more", () -> migrate(of("fly", "main", "more")));
    section("one that fails", () -> migrate(of("fly", "main", "more", "bad")));
    section("info after it", () -> info(of("fly", "main", "more", "bad")));
    section("repair", () -> of("fly", "main", "more").load().repair().repairActions);
    section("late", () -> validate(of("fly", "main", "more", "late")));
    section("late, out of order", () -> migrate(of("fly", "main", "more", "late").outOfOrder(true)));
    section("info after late", () -> info(of("fly", "main", "more", "late")));
    section("history", () -> query("SELECT installed_rank, version, description, type, script, checksum, installed_by, installed_on IS NOT NULL, "
        + "execution_time >= 0, success FROM fly.flyway_schema_history ORDER BY 1"));
    section("a migration that is gone", () -> validate(of("fly", "main", "late")));
    section("repair of it", () -> of("fly", "main", "late").load().repair().repairActions + "\n" + info(of("fly", "main", "late")));
    section("all in one transaction", () -> migrate(of("fly2", "main", "more", "bad").group(true).mixed(true)));
    section("which left nothing", () -> query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'fly2' ORDER BY 1"));
    section("concurrently", () -> {
      FluentConfiguration c = of("fly", "main", "more", "late", "concurrently");
      c.configuration(Map.of("flyway.postgresql.transactional.lock", "false"));
      return migrate(c);
    });
    section("clean", () -> {
      CleanResult r = of("fly", "main").load().clean();
      return r.schemasCleaned + " " + r.schemasDropped + "\n" + query("SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'fly'",
          "SELECT typname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE nspname = 'fly'");
    });
    section("baseline", () -> {
      exec("DROP SCHEMA IF EXISTS fly CASCADE", "CREATE SCHEMA fly", "CREATE TABLE fly.users (id int PRIMARY KEY)");
      BaselineResult r = of("fly", "main").baselineVersion("4").baselineDescription("was here").load().baseline();
      return r.successfullyBaselined + " " + r.baselineVersion + "\n" + migrate(of("fly", "late")) + info(of("fly", "main", "late"));
    });
    section("a schema with tables", () -> {
      exec("DROP SCHEMA fly CASCADE", "CREATE SCHEMA fly", "CREATE TABLE fly.users (id int PRIMARY KEY)");
      return migrate(of("fly", "main"));
    });
    section("three at once", () -> atOnce(true));
    section("three at once, by a session's lock", () -> atOnce(false));
  }
}
