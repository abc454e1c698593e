import java.io.ByteArrayOutputStream;
import java.io.File;
import java.sql.*;
import java.util.*;
import liquibase.Scope;
import liquibase.command.CommandScope;
import liquibase.command.core.helpers.DbUrlConnectionArgumentsCommandStep;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;

/** Runs Liquibase's commands over the changelogs of testdata/liquibase, whose path is the argument. */
public class Changes {
  interface Run {
    Object run() throws Exception;
  }

  static final String LOG = "changelogFile", MAIN = "changelog.xml";
  static String url;
  static File files;

  /** Errors of the server are among the answers: a change that fails is expected. */
  static void section(String name, Run r) {
    System.out.println("## " + name);
    try {
      System.out.println(plain("" + r.run()));
    } catch (Exception e) {
      Throwable c = e;
      while (c.getCause() != null) c = c.getCause();
      System.out.println((c instanceof SQLException ? "refused: " : "FAILED ") + plain("" + c));
    }
  }

  /** What runs and servers cannot but say differently. */
  static String plain(String s) {
    return s.replaceAll("ersion: 15.*", "ersion").replaceAll("127.0.0.1:\\d+", "HOST").replaceAll("\\b\\d{10}\\b", "DEPLOYMENT")
        .replaceAll("\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?|\\d+/\\d+/\\d+, \\d+:\\d+.[AP]M", "WHEN")
        .replaceAll("id=\"\\d{13}-", "id=\"NOW-").replaceAll("locked by .*? since", "locked since")
        .replaceAll("'[^']*' ?\\([^)]*\\)|\\b[-\\w.]+ \\([0-9.:a-f%]+\\)", "HOST");
  }

  static String run(String name, Object... arguments) throws Exception {
    try (Connection c = DriverManager.getConnection(url, "postgres", "unused")) {
      Database db = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
      db.setDefaultSchemaName("liq");
      db.setLiquibaseSchemaName("liq");
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      Object places = new DirectoryResourceAccessor(files);
      return Scope.child(Map.of(Scope.Attr.resourceAccessor.name(), places, Scope.Attr.ui.name(), new liquibase.ui.LoggerUIService()), () -> {
        CommandScope s = new CommandScope(name);
        s.addArgumentValue(DbUrlConnectionArgumentsCommandStep.DATABASE_ARG, db);
        if (name.equals("diff")) s.addArgumentValue("referenceDatabase", db).addArgumentValue("targetDatabase", db);
        for (int i = 0; i < arguments.length; i += 2) s.addArgumentValue((String) arguments[i], arguments[i + 1]);
        s.setOutput(out);
        s.execute();
        return out.toString();
      });
    }
  }

  static String query(String... queries) throws SQLException {
    StringBuilder b = new StringBuilder();
    try (Connection c = DriverManager.getConnection(url, "postgres", "unused"); Statement s = c.createStatement()) {
      s.execute("SET search_path = liq");
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

  static String done() throws SQLException {
    return query("SELECT id, author, filename, orderexecuted, exectype, md5sum, description, comments, tag FROM databasechangelog ORDER BY orderexecuted",
        "SELECT id, locked, lockgranted, lockedby FROM databasechangeloglock",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'liq' ORDER BY 1");
  }

  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    java.util.logging.LogManager.getLogManager().reset();
    System.setProperty("liquibase.analytics.enabled", "false");
    files = new File(a[0]);
    url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/lake?sslmode=disable";
    try (Connection c = DriverManager.getConnection(url, "postgres", "unused"); Statement s = c.createStatement()) {
      s.execute("CREATE SCHEMA liq");
    }
    section("status", () -> run("status", LOG, MAIN, "verbose", true));
    section("what it would do", () -> run("updateSql", LOG, MAIN));
    section("update", () -> run("update", LOG, MAIN) + done());
    section("update again", () -> run("update", LOG, MAIN) + run("status", LOG, MAIN, "verbose", true));
    section("history", () -> run("history"));
    section("rows", () -> query("SELECT id, email, name, active, balance, born, phone, rank, mood FROM person ORDER BY id", "SELECT * FROM pet ORDER BY 1",
        "SELECT * FROM owners ORDER BY 1", "SELECT * FROM tag ORDER BY 1", "SELECT nextval('ticket')"));
    section("one that fails", () -> run("update", LOG, "bad.xml"));
    section("after it", () -> done() + run("listLocks"));
    section("validate", () -> run("validate", LOG, MAIN));
    section("snapshot", () -> run("snapshot"));
    section("diff", () -> run("diff"));
    section("what a rollback would do", () -> run("rollbackCountSql", LOG, MAIN, "count", 3));
    section("rollback", () -> run("rollbackCount", LOG, MAIN, "count", 3) + done());
    section("rollback to a tag", () -> run("update", LOG, MAIN) + run("rollback", LOG, MAIN, "tag", "v1") + done());
    section("checksums", () -> run("update", LOG, MAIN) + run("clearChecksums") + query("SELECT count(*), count(md5sum) FROM databasechangelog")
        + run("changelogSync", LOG, MAIN) + query("SELECT count(*), count(md5sum) FROM databasechangelog"));
    section("drop all", () -> run("dropAll", "force", true) + query("SELECT relname FROM pg_class WHERE relnamespace = 'liq'::regnamespace ORDER BY 1"));
  }
}
