package examples_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// TestOnServers runs the tests of the programs on real servers, each with a database and a
// virtual host of its own. By themselves these tests need no servers.
func TestOnServers(t *testing.T) {
	redis := strings.Join(teststack.Redis(t), ",")
	for program, test := range map[string]string{"consumer": "TestConsumer", "flashsale": "TestFlashSale", "orders": "TestOrders", "sqlcshop": "TestSqlcShop", "twoservices": "TestTwoServices"} {
		t.Run(program, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-race", "-count=1", "-v", "-run", "^"+test+"$", "./"+program)
			cmd.Env = append(os.Environ(), "ON_SERVERS=1", "BELAY_REDIS_ADDRS="+redis,
				"BELAY_MYSQL_DSN="+teststack.MySQL(t), "BELAY_AMQP_URL="+teststack.AMQP(t))
			if program == "sqlcshop" || program == "twoservices" {
				cmd.Env = append(cmd.Env, "BELAY_POSTGRES_DSN="+teststack.Postgres(t))
			}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
