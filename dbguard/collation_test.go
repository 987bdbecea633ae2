package dbguard_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
)

// warnings is a gorm logger that keeps what it is warned of.
type warnings struct {
	logger.Interface
	lines []string
}

func (w *warnings) Warn(_ context.Context, format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

type Badge struct {
	ID   uint
	Code string
	Note string
}

// TestCheckWarnsOfCollations: texts that are two keys for the lock and one for the
// unique index are worth a warning, and do not keep a service from starting.
func TestCheckWarnsOfCollations(t *testing.T) {
	const exact = ""
	each(t, func(t *testing.T, db *gorm.DB) {
		var columns map[string]string // by type what they ignore
		switch server := version(t, db); {
		case db.Name() == "sqlite":
			columns = map[string]string{
				"TEXT": exact, "INTEGER": exact, "TEXT COLLATE NOCASE": "case", "TEXT COLLATE RTRIM": "spaces at the end",
				"VARBINARY(16)": "how a number is written",
			}
		case db.Name() == "postgres":
			wantNil(t, db.Exec("CREATE EXTENSION citext").Error)
			wantNil(t, db.Exec("CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level1', deterministic = false)").Error)
			columns = map[string]string{
				"varchar(16)": exact, "integer": exact, "uuid": exact,
				"citext": "case", "char(16)": "spaces at the end", `text COLLATE "folded"`: "case or accents",
			}
		case strings.Contains(server, "MariaDB"):
			columns = map[string]string{
				"varchar(16) COLLATE utf8mb4_nopad_bin": exact, "varbinary(16)": exact, "int": exact,
				"varchar(16) COLLATE utf8mb4_general_ci":       "case or accents or spaces at the end",
				"varchar(16) COLLATE utf8mb4_unicode_nopad_ci": "case or accents",
				"varchar(16) COLLATE utf8mb4_bin":              "spaces at the end",
				"char(16) COLLATE utf8mb4_nopad_bin":           "spaces at the end",
				"varchar(16) COLLATE latin1_swedish_ci":        "case or accents or spaces at the end",
			}
		default:
			columns = map[string]string{
				"varchar(16) COLLATE utf8mb4_0900_bin": exact, "varbinary(16)": exact, "int": exact,
				"varchar(16) COLLATE utf8mb4_0900_ai_ci": "case or accents",
				"varchar(16) COLLATE utf8mb4_0900_as_ci": "case",
				"varchar(16) COLLATE utf8mb4_bin":        "spaces at the end",
				"char(16) COLLATE utf8mb4_0900_bin":      "spaces at the end",
			}
		}
		for column, ignored := range columns {
			if strings.Contains(column, "utf8mb4_0900_bin") && !hasCollation(t, db, "utf8mb4_0900_bin") {
				continue // a MySQL before 8.0.17
			}
			wantNil(t, db.Exec("DROP TABLE IF EXISTS badges").Error)
			wantNil(t, db.Exec(fmt.Sprintf("CREATE TABLE badges (id int PRIMARY KEY, code %s NOT NULL UNIQUE, note varchar(16))", column)).Error)
			heard := &warnings{Interface: logger.Discard}
			wantNil(t, dbguard.Check(bg, db.Session(&gorm.Session{Logger: heard}), &Badge{}))
			got := strings.Join(heard.lines, "\n")
			if ignored == exact && got != "" {
				t.Errorf("%s: warned of %s", column, got)
			}
			for _, want := range []string{"model Badge, table badges: column code", "differ in " + ignored + " only"} {
				if ignored != exact && (!strings.Contains(got, want) || len(heard.lines) != 1) {
					t.Errorf("%s: warned of %q, want %q in one line", column, got, want)
				}
			}
		}
	})
}

// TestAdvisedCollationIsThere: MariaDB has another than MySQL, which has it since 8.0.17.
func TestAdvisedCollationIsThere(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() != "mysql" {
			return // it names no collation of the server's
		}
		wantNil(t, db.Exec("CREATE TABLE badges (id int PRIMARY KEY, code varchar(16) COLLATE utf8mb4_general_ci NOT NULL UNIQUE, note varchar(16))").Error)
		heard := &warnings{Interface: logger.Discard}
		wantNil(t, dbguard.Check(bg, db.Session(&gorm.Session{Logger: heard}), &Badge{}))
		_, advice, _ := strings.Cut(strings.Join(heard.lines, "\n"), "binary collation")
		named := regexp.MustCompile(`utf8mb4_\w+`).FindAllString(advice, -1)
		if len(named) != 1 {
			t.Fatalf("warned of %q, want one collation in it", heard.lines)
		}
		wantNil(t, db.Exec("ALTER TABLE badges MODIFY code varchar(16) COLLATE "+named[0]+" NOT NULL").Error)
	})
}

func hasCollation(t *testing.T, db *gorm.DB, name string) (has bool) {
	t.Helper()
	wantNil(t, db.Raw("SELECT COUNT(*) FROM information_schema.collations WHERE collation_name = ?", name).Scan(&has).Error)
	return has
}

func version(t *testing.T, db *gorm.DB) (version string) {
	t.Helper()
	if db.Name() == "mysql" {
		wantNil(t, db.Raw("SELECT VERSION()").Scan(&version).Error)
	}
	return version
}
