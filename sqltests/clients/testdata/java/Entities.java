import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import org.hibernate.*;
import org.hibernate.annotations.ColumnDefault; import org.hibernate.annotations.Comment; import org.hibernate.annotations.CreationTimestamp; import org.hibernate.annotations.Formula; import org.hibernate.annotations.Generated; import org.hibernate.annotations.JdbcTypeCode; import org.hibernate.annotations.OnDelete; import org.hibernate.annotations.OnDeleteAction;
import org.hibernate.cfg.*;
import org.hibernate.type.SqlTypes;

/** Has Hibernate make, check and change tables of mapped classes, and write and read them. */
public class Entities {
  public enum Mood { SAD, OK, HAPPY }
  @Embeddable public static class Address { public String street; @jakarta.persistence.Column(length = 10) public String zip; }
  @Entity(name = "Person") @jakarta.persistence.Table(name = "person", uniqueConstraints = @UniqueConstraint(name = "uq_email", columnNames = "email"), indexes = {@jakarta.persistence.Index(name = "ix_name", columnList = "name, born desc")})
  @org.hibernate.annotations.Comment("people")
  public static class Person {
    @Id @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "ps") @SequenceGenerator(name = "ps", sequenceName = "person_seq", allocationSize = 10) public Long id;
    @jakarta.persistence.Version public int version;
    @jakarta.persistence.Column(nullable = false, length = 80) @Comment("where to") public String email;
    public String name;
    public LocalDate born;
    public LocalDateTime at;
    public OffsetDateTime when_at;
    public Instant stamp;
    public LocalTime tea;
    public boolean active;
    public Double score;
    public Float f;
    public Short s;
    public Byte by;
    public Character ch;
    @jakarta.persistence.Column(precision = 12, scale = 2) @ColumnDefault("0") public BigDecimal balance;
    public UUID ref;
    public byte[] photo; @JdbcTypeCode(SqlTypes.JSON) public Map<String, Object> doc;
    @Enumerated(EnumType.STRING) public Mood mood; @Enumerated(EnumType.ORDINAL) public Mood mood2;
    @JdbcTypeCode(SqlTypes.NAMED_ENUM) public Mood pgmood;
    public String[] tags;
    public List<Integer> nums;
    public Duration took;
    @Embedded public Address address;
    @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("id") public List<Pet> pets = new ArrayList<>();
    @ManyToMany @JoinTable(name = "person_club") public Set<Club> clubs = new LinkedHashSet<>();
    @ElementCollection @CollectionTable(name = "nick") @OrderColumn(name = "pos") public List<String> nicks = new ArrayList<>();
    @Formula("(select count(*) from pet q where q.owner_id = id)") public int petCount;
  }
  @Entity(name = "Pet") @jakarta.persistence.Table(name = "pet") @Inheritance(strategy = InheritanceType.SINGLE_TABLE) @DiscriminatorColumn(name = "kind")
  public static class Pet { @Id @GeneratedValue(strategy = GenerationType.IDENTITY) public Integer id; @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(name = "owner_id", foreignKey = @jakarta.persistence.ForeignKey(name = "fk_owner")) @OnDelete(action = OnDeleteAction.CASCADE) public Person owner;
    public String name; @jakarta.persistence.Column(columnDefinition = "text default 'x'") public String note; }
  @Entity(name = "Dog") @DiscriminatorValue("dog") public static class Dog extends Pet { @org.hibernate.annotations.Check(constraints = "bark >= 0") public Integer bark; }
  @Entity(name = "Club") @jakarta.persistence.Table(name = "club") @Inheritance(strategy = InheritanceType.JOINED) public static class Club { @Id @GeneratedValue(strategy = GenerationType.UUID) public UUID id;
    public String title; @CreationTimestamp public Instant made; }
  @Entity(name = "ChessClub") @jakarta.persistence.Table(name = "chess_club") public static class ChessClub extends Club { public int boards; }
  @Entity(name = "Doc") @jakarta.persistence.Table(name = "doc") public static class Doc { @EmbeddedId public DocId id; @jakarta.persistence.Column(length = 100000) public String big;
    public BigDecimal price; @Generated @jakarta.persistence.Column(columnDefinition = "int generated always as (length(title)) stored", insertable = false, updatable = false) public Integer len;
    public String title; }
  @Embeddable public static class DocId implements java.io.Serializable { public int a;
    public String b;
    public boolean equals(Object o) { return o instanceof DocId d && d.a == a && d.b.equals(b); } public int hashCode() { return a; } }
  @Entity(name = "Person2") @jakarta.persistence.Table(name = "person") public static class Person2 { @Id public Long id;
    public String email;
    public String extra; @jakarta.persistence.Column(columnDefinition = "int default 5 not null") public int level; @ManyToOne @JoinColumn(name = "boss") public Person2 boss; }

  static String url;
  interface Run { Object run() throws Exception; }
  static void section(String name, Run r) {
    System.out.println("## " + name);
    try {
      System.out.println(r.run());
    } catch (org.hibernate.tool.schema.spi.SchemaManagementException e) {
      System.out.println("refused: " + e.getMessage());
    } catch (Exception e) {
      System.out.println("FAILED " + e + " " + e.getCause());
    }
  }
  static SessionFactory factory(String ddl, Class<?>... classes) {
    Configuration c = new Configuration();
    for (Class<?> k : classes) c.addAnnotatedClass(k);
    c.setProperty("hibernate.connection.url", url + "&currentSchema=hib").setProperty("hibernate.connection.username", "postgres").setProperty("hibernate.connection.password", "x")
      .setProperty("hibernate.hbm2ddl.auto", ddl).setProperty("hibernate.default_schema", "hib").setProperty("hibernate.hbm2ddl.halt_on_error", "false").setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.order_inserts", "true").setProperty("hibernate.jdbc.time_zone", "UTC").setProperty("hibernate.type.preferred_duration_jdbc_type", "INTERVAL_SECOND");
    return c.buildSessionFactory();
  }
  static void exec(String q) throws Exception { try (var c = java.sql.DriverManager.getConnection(url, "postgres", "x"); var s = c.createStatement()) { s.execute(q); } }
  static String query(String q) throws Exception {
    try (var c = java.sql.DriverManager.getConnection(url, "postgres", "x"); var s = c.createStatement()) {
      StringBuilder b = new StringBuilder(); var r = s.executeQuery(q); int n = r.getMetaData().getColumnCount();
      while (r.next()) { for (int i = 1; i <= n; i++) b.append(r.getString(i)).append(" | "); b.append("\n"); } return b.toString(); }
  }
  static String show(Person p) { return p.id + " " + p.version + " " + p.email + " " + p.name + " " + p.born + " " + p.at + " " + p.when_at + " " + p.stamp + " " + p.tea + " " + p.active + " " + p.score + " " + p.f + " " + p.s + " " + p.by + " " + p.ch + " " + p.balance + " " + p.ref + " " + Arrays.toString(p.photo) + " " + p.doc + " " + p.mood + " " + p.mood2 + " " + p.pgmood + " " + Arrays.toString(p.tags) + " " + p.nums + " " + p.took + " " + (p.address == null ? null : p.address.street + "/" + p.address.zip) + " pets " + p.pets.size() + "=" + p.petCount + " clubs " + p.clubs.size() + " " + p.nicks; }
  static Class<?>[] ALL = {Person.class, Pet.class, Dog.class, Club.class, ChessClub.class, Doc.class};
  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC")); java.util.logging.LogManager.getLogManager().reset();
    url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/lake?sslmode=disable";
    exec("CREATE SCHEMA hib");
    section("create", () -> { factory("create", ALL).close(); return query("SELECT table_name, column_name, data_type, is_nullable, column_default, character_maximum_length, numeric_precision, is_identity, generation_expression FROM information_schema.columns WHERE table_schema = 'hib' ORDER BY 1, 2"); });
    section("constraints", () -> query("SELECT conrelid::regclass, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'hib'::regnamespace ORDER BY conrelid::regclass::text COLLATE \"C\", 2, 3") + query("SELECT indexdef FROM pg_indexes WHERE schemaname = 'hib' ORDER BY 1") + query("SELECT sequencename, increment_by FROM pg_sequences WHERE schemaname = 'hib' ORDER BY 1"));
    section("validate", () -> { factory("validate", ALL).close(); return "valid"; });
    section("update of nothing", () -> { factory("update", ALL).close(); return "done"; });
    SessionFactory f = factory("validate", ALL);
    section("persist", () -> { f.inTransaction(s -> {
      for (int i = 0; i < 12; i++) {
        Person p = new Person();
        p.email = "p" + i + "@x.org"; p.name = i % 3 == 0 ? null : "Name " + i; p.born = LocalDate.of(1990, 1, i + 1); p.at = LocalDateTime.of(2024, 2, 29, 12, 0, i, 123456000); p.when_at = OffsetDateTime.of(2024, 1, 1, 0, 0, i, 0, ZoneOffset.ofHours(2)); p.stamp = Instant.ofEpochSecond(i * 1000000L, 5000); p.tea = LocalTime.of(16, i); p.active = i % 2 == 0; p.score = i / 7.0; p.f = 1.5f * i; p.s = (short) -i; p.by = (byte) i; p.ch = (char) ('a' + i); p.balance = new BigDecimal("10.25").multiply(new BigDecimal(i)).setScale(2); p.ref = new UUID(i, i); p.photo = new byte[] {0, (byte) i, -1}; p.doc = new TreeMap<>(Map.of("k", i, "s", "it's \"x\"")); p.mood = Mood.values()[i % 3]; p.mood2 = Mood.values()[i % 3]; p.pgmood = i == 4 ? null : Mood.values()[i % 3]; p.tags = i == 5 ? null : new String[] {"t" + i, "a b", null}; p.nums = List.of(i, 2); p.took = Duration.ofMillis(1500L * i); p.address = new Address(); p.address.street = "S" + i; p.address.zip = "" + i;
        Dog d = new Dog(); d.owner = p; d.name = "Rex" + i; d.bark = i; Pet c = new Pet(); c.owner = p; c.name = "Tom" + i; c.note = "n"; if (i > 0) p.pets.add(d); if (i > 1) p.pets.add(c); p.nicks.addAll(List.of("x" + i, "y")); s.persist(p);
        if (i < 2) { ChessClub k = new ChessClub(); k.title = "C" + i; k.boards = i; s.persist(k); p.clubs.add(k); } }
      Doc d = new Doc(); d.id = new DocId(); d.id.a = 1; d.id.b = "b"; d.big = "large ".repeat(10); d.price = new BigDecimal("1.50"); d.title = "four"; s.persist(d); }); return "done"; });
    section("read", () -> f.fromTransaction(s -> { StringBuilder b = new StringBuilder(); for (Person p : s.createQuery("from Person order by id", Person.class).list()) b.append(show(p)).append("\n"); Doc d = s.createQuery("from Doc", Doc.class).getSingleResult(); return b + d.big + d.price + d.len; }));
    section("queries", () -> f.fromTransaction(s -> { StringBuilder b = new StringBuilder();
      for (String q : new String[] {
        "select p.name, count(t), sum(p.balance), avg(p.score) from Person p left join p.pets t group by p.name having count(t) >= 0 order by p.name nulls last",
        "select p.email from Person p where p.mood = 'OK' and p.active = true and lower(p.name) like 'name%' order by p.id",
        "select p.id from Person p where exists (select 1 from Dog d where d.owner = p and d.bark > 9) order by 1",
        "select year(p.born), month(p.born), day(p.born), extract(epoch from p.at) from Person p where p.id = 3",
        "select p.email from Person p where p.balance between 20 and 50 and p.born > {d '1990-01-02'} order by p.email desc",
        "select coalesce(p.name, 'none'), concat(p.email, '!', p.id), substring(p.email, 2, 3), length(p.email), trim(p.email), locate('@', p.email), cast(p.id as string), mod(p.id, 3), abs(p.s), sqrt(p.score), round(p.balance, 1), upper(p.email), replace(p.email, 'x', 'y'), left(p.email, 2), nullif(p.name, 'Name 1') from Person p order by p.id",
        "select p.email, row_number() over (partition by p.active order by p.id) from Person p order by p.id",
        "select t.name, type(t) from Pet t where t.owner.name is not null order by t.id",
        "select c.title, treat(c as ChessClub).boards from Club c order by c.title",
        "select p.id from Person p where array_contains(p.tags, 't3')",
        "select listagg(p.email, ',') within group (order by p.id) from Person p where p.id < 5",
        "select p.pgmood, count(*) from Person p group by p.pgmood order by p.pgmood",
        "select distinct element(p.nicks) from Person p where p.id < 4 order by 1",
        "select p.at + 1 day, p.born - 1 month from Person p where p.id = 1",
        "with c as (select p.id as id, p.balance as b from Person p where p.active) select sum(c.b) from c c",
        "select p.email from Person p where (p.id, p.version) in ((1, 0), (2, 0)) order by 1",
        "select p.id from Person p order by p.id limit 3 offset 2",
        "select case when p.balance > 50 then 'rich' else 'poor' end, count(*) from Person p group by 1 order by 1",
        "select max(p.at), min(p.when_at), every(p.active), any(p.active) from Person p",
        "select p.took, p.doc from Person p where p.id = 2"})
        try { b.append("> ").append(q).append("\n"); for (Object o : s.createQuery(q, Object.class).list()) b.append(o instanceof Object[] x ? Arrays.deepToString(x) : o).append("\n"); } catch (RuntimeException e) { b.append("FAILED ").append(e).append(" ").append(e.getCause()).append("\n"); s.getTransaction().rollback(); s.getTransaction().begin(); }
      return b.toString(); }));
    section("page", () -> f.fromTransaction(s -> s.createQuery("select p.email from Person p order by p.born desc", String.class).setFirstResult(3).setMaxResults(4).list()));
    section("scroll", () -> f.fromTransaction(s -> { StringBuilder b = new StringBuilder(); try (ScrollableResults<String> r = s.createQuery("select p.email from Person p order by p.id", String.class).setFetchSize(3).scroll(ScrollMode.FORWARD_ONLY)) { while (r.next()) b.append(r.get()).append(" "); } return b; }));
    section("lock", () -> f.fromTransaction(s -> { Person p = s.find(Person.class, 1L, LockModeType.PESSIMISTIC_WRITE); p.name = "locked"; Person q = s.createQuery("from Person where id = 2", Person.class).setLockMode(LockModeType.PESSIMISTIC_READ).getSingleResult(); return q.email + s.createQuery("from Person where id = 3", Person.class).setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).list().size(); }));
    section("optimistic lock", () -> { Session s1 = f.openSession(), s2 = f.openSession(); s1.beginTransaction(); s2.beginTransaction(); Person p1 = s1.find(Person.class, 2L), p2 = s2.find(Person.class, 2L); p1.name = "one"; s1.getTransaction().commit(); p2.name = "two"; try { s2.getTransaction().commit(); return "not refused"; } catch (RollbackException | OptimisticLockException e) { return e.getClass().getName() + " " + e.getCause(); } finally { s1.close(); s2.close(); } });
    section("unique", () -> { try { f.inTransaction(s -> { Person p = new Person(); p.email = "p1@x.org"; s.persist(p); }); return "not refused"; } catch (Exception e) { return e.getClass().getName() + " " + (e.getCause() instanceof org.hibernate.exception.ConstraintViolationException c ? c.getConstraintName() + " " + c.getKind() + " " + c.getSQLException().getMessage() : e instanceof org.hibernate.exception.ConstraintViolationException d ? d.getConstraintName() + " " + d.getSQLException().getMessage() : e.getCause()); } });
    section("update", () -> f.fromTransaction(s -> s.createMutationQuery("update Person set balance = balance + 1, name = concat(name, '!') where active = true").executeUpdate() + " " + s.createMutationQuery("update versioned Person set score = 0 where id in (select t.owner.id from Dog t where t.bark > 8)").executeUpdate() + " " + s.createMutationQuery("insert into Doc (id.a, id.b, title) select cast(p.id as integer), p.email, p.name from Person p where p.id < 4").executeUpdate() + " " + s.createMutationQuery("insert into Doc (id.a, id.b, title) values (1, 'b', 'new') on conflict (id.a, id.b) do update set title = excluded.title").executeUpdate() + " " + s.createMutationQuery("delete from Pet where owner.id > 10").executeUpdate()));
    section("merge and remove", () -> f.fromTransaction(s -> { Person p = s.find(Person.class, 3L); p.pets.remove(0); p.nicks.remove(0); p.nicks.add("z"); p.clubs.clear(); Person q = s.find(Person.class, 4L); s.remove(q); s.flush(); s.clear(); Person m = new Person(); m.id = 3L; m.version = p.version; m.email = "merged"; s.merge(m); s.flush(); return "done"; }));
    section("stateless", () -> f.fromStatelessTransaction(s -> { Doc d = new Doc(); d.id = new DocId(); d.id.a = 1; d.id.b = "b"; d.title = "upserted"; s.upsert(d); d.id.a = 77; s.upsert(d); return s.createQuery("select d.id.a, d.id.b, d.title, d.len from Doc d order by 1, 2", Object[].class).list().stream().map(Arrays::toString).toList(); }));
    section("read again", () -> f.fromTransaction(s -> { StringBuilder b = new StringBuilder(); for (Person p : s.createQuery("from Person order by id", Person.class).list()) b.append(show(p)).append("\n"); return b; }));
    section("native", () -> f.fromTransaction(s -> s.createNativeQuery("select id, email, doc->>'k', tags[1] from hib.person where balance > :b order by id", Object[].class).setParameter("b", new BigDecimal("30")).list().stream().map(Arrays::toString).toList()));
    section("sequence", () -> { f.inTransaction(s -> { for (int i = 0; i < 15; i++) { Person p = new Person(); p.email = "q" + i; s.persist(p); } }); return query("SELECT min(id), max(id) FROM hib.person WHERE email LIKE 'q%'"); });
    f.close();
    section("update adds", () -> { factory("update", Person2.class).close(); return query("SELECT column_name, data_type, column_default FROM information_schema.columns WHERE table_schema = 'hib' AND table_name = 'person' AND column_name IN ('extra', 'level', 'boss') ORDER BY 1") + query("SELECT contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'hib.person'::regclass AND contype = 'f'"); });
    section("validate fails", () -> { exec("ALTER TABLE hib.club DROP COLUMN title"); factory("validate", ALL).close(); return "valid"; });
    section("create-drop", () -> { factory("create-drop", ALL).close(); return query("SELECT relname FROM pg_class WHERE relnamespace = 'hib'::regnamespace ORDER BY 1"); });
  }
}
