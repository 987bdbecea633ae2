package outbox

import (
	"context"

	"github.com/belaygo/belay/internal/asciijson"
	"github.com/belaygo/belay/notify"
)

// encode returns the JSON of a valid event in plain ASCII. Other characters are
// escaped: a connection whose character set is not utf8mb4 would refuse or change them.
func encode(ev notify.Event) ([]byte, error) {
	body, err := ev.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return asciijson.Escape(body), nil
}

// send gives a stored event to the publisher: as it is, if the publisher takes that,
// so that members which another version has written are handed on. The error matches
// notify.ErrInvalidEvent if body is no event.
func send(ctx context.Context, to notify.Publisher, body []byte) error {
	if raw, ok := to.(notify.RawPublisher); ok {
		return raw.PublishRaw(ctx, body)
	}
	var ev notify.Event
	if err := ev.UnmarshalJSON(body); err != nil {
		return err
	}
	return to.Publish(ctx, ev)
}
