package teststack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// AMQP returns the URL of an empty RabbitMQ virtual host made for this test. It
// is deleted when the test ends, and what is still connected is cut off.
func AMQP(tb testing.TB) string {
	tb.Helper()
	return newVirtualHost(tb, setting(tb, "BELAY_AMQP_URL"), AMQPAPI(tb))
}

// AMQPAPI returns the base URL of RabbitMQ's HTTP API, with user and password
// and without a slash at its end. It serves all virtual hosts: the path of the
// URL from [AMQP] tells which one is the test's own.
func AMQPAPI(tb testing.TB) string {
	tb.Helper()
	return strings.TrimSuffix(setting(tb, "BELAY_AMQP_API"), "/")
}

// LimitQueue gives a queue in the virtual host of a URL from [AMQP] room for so
// many messages.
func LimitQueue(tb testing.TB, broker, queue string, messages int) {
	tb.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		tb.Fatal("the broker's URL is none")
	}
	manage(tb, http.MethodPut, AMQPAPI(tb)+"/api/policies"+u.Path+"/"+queue,
		fmt.Sprintf(`{"pattern":"^%s$","definition":{"max-length":%d}}`, queue, messages))
}

// AMQPUser returns the URL of a new user of the virtual host of a URL from [AMQP],
// who has no permission but to write to what matches the regular expression. The
// user is deleted when the test ends.
func AMQPUser(tb testing.TB, broker, write string) string {
	tb.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		tb.Fatal("the broker's URL is none")
	}
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
	u, err := url.Parse(user)
	if err != nil {
		tb.Fatal("the user's URL is none")
	}
	manage(tb, http.MethodPut, AMQPAPI(tb)+"/api/permissions"+u.Path+"/"+u.User.Username(),
		fmt.Sprintf(`{"configure":"^$","write":%q,"read":"^$"}`, write))
}

func newVirtualHost(tb testing.TB, address, api string) string {
	tb.Helper()
	broker, err := url.Parse(address)
	if err != nil {
		tb.Fatal("the broker's URL is none")
	}

	vhost := "test-" + randomName()
	user := url.PathEscape(broker.User.Username())
	manage(tb, http.MethodPut, api+"/api/vhosts/"+vhost, "")
	tb.Cleanup(func() { manage(tb, http.MethodDelete, api+"/api/vhosts/"+vhost, "") })
	manage(tb, http.MethodPut, api+"/api/permissions/"+vhost+"/"+user,
		`{"configure":".*","write":".*","read":".*"}`)

	broker.Path = "/" + vhost
	return broker.String()
}

// manage sends one request to the HTTP API and expects success.
func manage(tb testing.TB, method, address, body string) {
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
	if response.StatusCode >= http.StatusMultipleChoices {
		tb.Fatal(refusal(request, response))
	}
}

func refusal(request *http.Request, response *http.Response) string {
	reason, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return fmt.Sprintf("%s %s: rabbitmq answers %s: %s", request.Method, request.URL.Path, response.Status, reason)
}
