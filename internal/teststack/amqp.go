package teststack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// AMQP returns the URL of an empty RabbitMQ virtual host made for this test. It
// is deleted some time after the test has ended.
func AMQP(tb testing.TB) string {
	tb.Helper()
	return newVirtualHost(tb, setting(tb, "BELAY_AMQP_URL"), AMQPAPI(tb))
}

// AMQPAPI returns the base URL of RabbitMQ's HTTP API, with user and password
// and without a slash at its end. It serves all virtual hosts: the path of the
// URL from [AMQP] names the one that is the test's own.
func AMQPAPI(tb testing.TB) string {
	tb.Helper()
	return strings.TrimSuffix(setting(tb, "BELAY_AMQP_API"), "/")
}

// LimitQueue gives a queue in the virtual host of a URL from [AMQP] room for so
// many messages.
func LimitQueue(tb testing.TB, broker, queue string, messages int) {
	tb.Helper()
	u := parse(tb, broker)
	manage(tb, http.MethodPut, AMQPAPI(tb)+"/api/policies"+u.Path+"/"+queue,
		fmt.Sprintf(`{"pattern":"^%s$","definition":{"max-length":%d}}`, queue, messages))
}

// AMQPUser returns the URL of a new user of the virtual host of a URL from [AMQP],
// who has no permission but to write to what matches the regular expression. The
// user is deleted when the test ends.
func AMQPUser(tb testing.TB, broker, write string) string {
	tb.Helper()
	u := parse(tb, broker)
	api, name := AMQPAPI(tb), "test-"+randomName()
	manage(tb, http.MethodPut, api+"/api/users/"+name, `{"password":"test","tags":""}`)
	tb.Cleanup(func() { manage(tb, http.MethodDelete, api+"/api/users/"+name, "") })
	u.User = url.UserPassword(name, "test")
	Grant(tb, u.String(), write)
	return u.String()
}

// Grant replaces the permissions of a user, whose URL is from [AMQPUser], with
// the one to write to what matches the regular expression.
func Grant(tb testing.TB, user, write string) {
	tb.Helper()
	Permit(tb, user, "^$", write, "^$")
}

// Permit replaces all permissions of a user, whose URL is from [AMQPUser].
func Permit(tb testing.TB, user, configure, write, read string) {
	tb.Helper()
	u := parse(tb, user)
	manage(tb, http.MethodPut, AMQPAPI(tb)+"/api/permissions"+u.Path+"/"+u.User.Username(),
		fmt.Sprintf(`{"configure":%q,"write":%q,"read":%q}`, configure, write, read))
}

// parse does not show the URL, which holds a password.
func parse(tb testing.TB, address string) *url.URL {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal("the broker's URL is none")
	}
	return u
}

func newVirtualHost(tb testing.TB, address, api string) string {
	tb.Helper()
	broker := parse(tb, address)
	deleteDone(tb, api)

	vhost := "test-" + randomName()
	user := url.PathEscape(broker.User.Username())
	manage(tb, http.MethodPut, api+"/api/vhosts/"+vhost, "")
	tb.Cleanup(func() {
		manage(tb, http.MethodPut, api+"/api/vhosts/"+vhost, fmt.Sprintf(`{"description":"%s%d"}`, done, time.Now().Unix()))
	})
	manage(tb, http.MethodPut, api+"/api/permissions/"+vhost+"/"+user,
		`{"configure":".*","write":".*","read":".*"}`)

	broker.Path = "/" + vhost
	return broker.String()
}

// done begins the description of a virtual host whose test has ended, before the
// time of that.
const done = "done at "

// deleteDone deletes the virtual hosts of tests that ended a while ago.
//
// Not at the end of the test itself: a client that it has killed may have left a
// queue half declared. If a queue with dead-lettering at least once is deleted
// within the first milliseconds of its life, RabbitMQ 3.10 stops dead-lettering for
// good, and each such queue that is declared later fails with 541 (RabbitMQ issue
// 16652).
func deleteDone(tb testing.TB, api string) {
	tb.Helper()
	var hosts []struct{ Name, Description string }
	if err := json.Unmarshal(manage(tb, http.MethodGet, api+"/api/vhosts", ""), &hosts); err != nil {
		tb.Fatalf("virtual hosts of rabbitmq: %v", err)
	}
	for _, h := range hosts {
		at, found := strings.CutPrefix(h.Description, done)
		seconds, err := strconv.ParseInt(at, 10, 64)
		if found && err == nil && time.Since(time.Unix(seconds, 0)) > 5*time.Second {
			manage(tb, http.MethodDelete, api+"/api/vhosts/"+h.Name, "")
		}
	}
}

// manage sends one request to the HTTP API, expects success, and returns the answer.
// What is to be deleted another test may be deleting.
func manage(tb testing.TB, method, address, body string) []byte {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		tb.Fatal("the URL of RabbitMQ's HTTP API is none")
	}

	// A connection of its own, closed at once: none is left over to look like a
	// goroutine that the test forgot.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatalf("ask rabbitmq: %v", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices && method != http.MethodDelete {
		tb.Fatal(refusal(request, response))
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatalf("ask rabbitmq: %v", err)
	}
	return answer
}

func refusal(request *http.Request, response *http.Response) string {
	reason, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return fmt.Sprintf("%s %s: rabbitmq answers %s: %s", request.Method, request.URL.Path, response.Status, reason)
}
