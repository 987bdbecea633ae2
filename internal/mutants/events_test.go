package mutants

// outboxMutants lose events between the database and the broker.
var outboxMutants = []mutant{
	{
		name:  "delete-by-id",
		loses: "After a failover that lost rows, an event that was stored since is deleted unpublished.",
		file:  "notify/outbox/table.go",
		old:   `	return "id IN (" + marks + ") AND COALESCE(event_id, '') IN (" + marks + ")", args`,
		new:   `	return "id IN (" + marks + ")", args[:len(rows)]`,
		tests: "notify/outbox TestDeleteSparesAnotherEventOfTheSameID",
	},
	{
		name:  "lease-not-looked-at",
		loses: "Each event is published by every process that shares the table.",
		file:  "notify/outbox/table.go",
		old:   `WHERE id > ? AND NOT (" + isLeased + ") AND NOT (`,
		new:   `WHERE id > ? AND NOT (`,
		tests: "notify/outbox TestLeasedRowsAreLeftAlone TestSeveralRelaysShareTheRows",
	},
	{
		name:  "lease-without-a-bound",
		loses: "After the clock of the database was set back, events wait for hours.",
		file:  "notify/outbox/table.go",
		old:   `fmt.Sprintf("leased_until BETWEEN {now} + 1 AND {now} + %d", longest.Milliseconds())`,
		new:   `fmt.Sprintf("leased_until > {now} + 0 * %d", longest.Milliseconds())`,
		tests: "notify/outbox TestClockSetBack",
	},
	{
		name:  "switch-waits-for-a-heartbeat",
		loses: "guard-monitor learns of a switch when it is over.",
		file:  "notify/outbox/heartbeat.go",
		old:   `if !due && !h.news.due(now, known) {`,
		new:   `if !due || h.news.due(now, known) && now.IsZero() {`,
		tests: "notify/outbox TestHeartbeatTellsOfASwitchAtOnce",
	},
	{
		name:  "timeout-is-a-confirm",
		loses: "An event that the broker did not confirm in time is deleted.",
		file:  "notify/outbox/relay.go",
		old:   `	err := r.publish(ctx, stored.body)`,
		new: `	err := r.publish(ctx, stored.body)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}`,
		tests: "notify/outbox TestEventWithoutAnAnswerIsKept",
	},
	{
		name:  "deleted-before-it-is-published",
		loses: "A relay that dies between the two, or whose broker is away, loses the event.",
		file:  "notify/outbox/relay.go",
		old:   `	err := r.publish(ctx, stored.body)`,
		new: `	_ = r.table.remove(ctx, []row{stored})
	err := r.publish(ctx, stored.body)`,
		tests: "notify/outbox TestRelayGoesOnWhenTheBrokerIsBack",
	},
	{
		name:  "answer-before-the-insert",
		loses: "A process that ends after Do has returned takes the event with it.",
		file:  "notify/outbox/writer.go",
		old: `	<-e.done
	if e.err != nil {`,
		new: `	go func() { <-e.done }()
	if len(e.body) == 0 {`,
		tests: "notify/outbox TestStoreOnly TestEventThatWouldBeLostIsLoggedWhole",
	},
	{
		name:  "failed-publish-is-a-confirm",
		loses: "The events of an outage of the broker are deleted unpublished.",
		file:  "notify/outbox/relay.go",
		old: `	r.sweep.failed = true
	r.failures++`,
		new: `	r.confirmed = append(r.confirmed, stored)
	r.failures++`,
		tests: "notify/outbox TestRelayGoesOnWhenTheBrokerIsBack",
	},
	{
		name:  "unreadable-row-deleted",
		loses: "An event that an older relay can't read is deleted.",
		file:  "notify/outbox/relay.go",
		old:   `		return r.setAside(ctx, stored, err)`,
		new: `		r.confirmed = append(r.confirmed, stored)
		return nil`,
		tests: "notify/outbox TestUnreadableRowStaysAndBlocksNobody",
	},
	{
		name:  "failed-delete-is-forgotten",
		loses: "Events are published again and again while the table can't be written.",
		file:  "notify/outbox/relay.go",
		old: `	if err == nil {
		r.confirmed = nil
	}`,
		new:   `	r.confirmed = nil`,
		tests: "notify/outbox TestConfirmedEventIsNotPublishedAgain",
	},
	{
		name:  "relay-stops-at-a-lost-answer",
		loses: "One lost packet stops the relay until the process is restarted.",
		file:  "internal/sqldb/tx.go",
		old:   `	ctx, cancel := context.WithTimeout(ctx, endTimeout)`,
		new:   `	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))`,
		tests: "notify/outbox TestRelaySurvivesALostAnswer",
	},
	{
		name:  "own-statements-trust-autocommit",
		loses: "Where autocommit is off, events are stored and never committed.",
		file:  "internal/sqldb/dialect.go",
		old:   `		transacts:  true,`,
		new:   `		transacts:  false,`,
		tests: "notify/outbox TestEventsAreCommittedWithoutAutocommit",
	},
	{
		name:  "events-of-one-key-are-joined",
		loses: "Of a burst on one key only the first event is stored.",
		file:  "notify/outbox/writer.go",
		old:   `	e := w.open.add(ev, body)`,
		new: `	if n := len(w.open.entries); n > 0 && w.open.entries[n-1].event.Key == ev.Key {
		return w.open.entries[n-1]
	}
	e := w.open.add(ev, body)`,
		tests: "notify/outbox TestBurstOfOneKeyIsStoredWhole",
	},
	{
		name:  "refused-event-takes-its-batch-along",
		loses: "One event that the database refuses costs all those that share its INSERT.",
		file:  "notify/outbox/writer.go",
		old:   `	if err != nil && len(b.entries) > 1 {`,
		new:   `	if err != nil && len(b.entries) > maxEntries {`,
		tests: "notify/outbox TestRefusedEventDoesNotTakeOthersWithIt",
	},
	{
		name:  "unstored-event-is-not-published",
		loses: "While the database is away events are lost, though the broker is there.",
		file:  "notify/outbox/writer.go",
		old: `	if w.cfg.Relay != nil {
		err = w.within(`,
		new: `	if w.cfg.Relay != nil && e.err == nil {
		err = w.within(`,
		tests: "notify/outbox TestWithoutTableEventsGoStraightToTheRelay",
	},
	{
		name:  "stored-event-is-written-anew",
		loses: "An older relay drops what a newer version has put into an event.",
		file:  "notify/outbox/body.go",
		old:   `	if raw, ok := to.(notify.RawPublisher); ok {`,
		new:   `	if raw, ok := to.(notify.RawPublisher); ok && len(body) == 0 {`,
		tests: "notify/rabbitmq TestOlderRelayHandsOnANewerEvent",
	},
}

// webhookMutants lose events between the outbox and a monitor that they are posted to.
var webhookMutants = []mutant{
	{
		name:  "any-answer-is-a-confirm",
		loses: "An event that another server at the address answered counts as published.",
		file:  "notify/webhook/post.go",
		old:   `	case (code == http.StatusOK || code == http.StatusAccepted) && a.Taken == id:`,
		new:   `	case (code == http.StatusOK || code == http.StatusAccepted) && len(id) > 0:`,
		tests: "notify/webhook TestOnlyTheMonitorsAnswerCounts",
	},
	{
		name:  "event-follows-a-redirect",
		loses: "The token goes to wherever a redirect leads, and the event with it.",
		file:  "notify/webhook/publisher.go",
		old:   `		return http.ErrUseLastResponse`,
		new:   `		return nil`,
		tests: "notify/webhook TestOnlyTheMonitorsAnswerCounts",
	},
	{
		name:  "proxys-refusal-rejects",
		loses: "A proxy that answers 400 for a while has each event wait for an hour.",
		file:  "notify/webhook/post.go",
		old:   `	case a.Rejected:`,
		new:   `	case a.Rejected || code == http.StatusBadRequest:`,
		tests: "notify/webhook TestOnlyTheMonitorsAnswerCounts",
	},
	{
		name:  "pause-ignored",
		loses: "A monitor that is overloaded gets the next event at once, from every service.",
		file:  "notify/outbox/relay.go",
		old:   ` || askedPause(err) > 0 {`,
		new:   ` || err == nil {`,
		tests: "notify/outbox TestRelayPausesAsAsked",
	},
	{
		name:  "answered-before-it-is-stored",
		loses: "An event that the monitor had not on disk when it died is deleted by its sender.",
		file:  "cmd/guard-monitor/internal/intake/endpoint.go",
		old:   `	added, err := e.cfg.Take(r.Context(), ev, body, sender.Name)`,
		new: `	answer(w, http.StatusAccepted, ingest.Answer{Taken: ev.ID})
	added, err := e.cfg.Take(r.Context(), ev, body, sender.Name)`,
		tests: "cmd/guard-monitor/internal/intake TestEndpointAnswersAfterTheStore",
	},
	{
		name:  "token-for-every-service",
		loses: "A service can report in the name of another.",
		file:  "cmd/guard-monitor/internal/intake/config.go",
		old:   `	return slices.Contains(s.Services, service) || slices.Contains(s.Services, AnyService)`,
		new:   `	return !slices.Contains(s.Services, "") && service != ""`,
		tests: "cmd/guard-monitor/internal/intake TestEndpointIsForItsSenders",
	},
}

// brokerMutants lose events between the publisher and the queue.
var brokerMutants = []mutant{
	{
		name:  "confirm-not-awaited",
		loses: "An event counts as published that the broker never had.",
		file:  "notify/rabbitmq/lane.go",
		old:   `	timer := time.NewTimer(l.timeout)`,
		new: `	if r.key != "" {
		return nil, nil
	}
	timer := time.NewTimer(l.timeout)`,
		tests: "notify/rabbitmq TestFullQueueRefuses TestHalfOpenLink",
	},
	{
		name:  "refusal-is-a-confirm",
		loses: "An event that a full queue rejects counts as published.",
		file:  "notify/rabbitmq/lane.go",
		old:   `		return errRefused, nil`,
		new:   `		return nil, nil`,
		tests: "notify/rabbitmq TestFullQueueRefuses",
	},
	{
		name:  "not-mandatory",
		loses: "An event that no queue takes counts as published.",
		file:  "notify/rabbitmq/lane.go",
		old:   `(rabbit.Exchange, r.key, true,`,
		new:   `(rabbit.Exchange, r.key, r.key == "",`,
		tests: "notify/rabbitmq TestQueueThatTakesNothingIsAnError",
	},
	{
		name:  "not-persistent",
		loses: "A restart of the broker loses the events that wait in it.",
		file:  "notify/rabbitmq/message.go",
		old:   `DeliveryMode: amqp.Persistent,`,
		new:   `DeliveryMode: amqp.Transient,`,
		tests: "notify/rabbitmq TestPublishedMessage",
	},
	{
		name:  "any-queue-will-do",
		loses: "With a queue for debugging bound, events of an absent monitor are lost.",
		file:  "notify/rabbitmq/lane.go",
		old:   `	if err := l.require(r.queue); err != nil {`,
		new:   `	if err := l.require(""); err != nil {`,
		tests: "notify/rabbitmq TestEventsWaitForTheMonitorsQueue",
	},
	{
		name:  "queue-trusted-when-declared",
		loses: "Events that come before the monitor has bound its new queue are lost.",
		file:  "notify/rabbitmq/absence.go",
		old:   `	if consumers == 0 && time.Since(a.since) < bindingTime {`,
		new:   `	if consumers < 0 {`,
		tests: "notify/rabbitmq TestDeclaredQueueIsNotTrustedBeforeItIsBound",
	},
	{
		name:  "queue-not-trusted-without-a-reader",
		loses: "Events stay in the outbox until a monitor runs, though its queue is there.",
		file:  "notify/rabbitmq/absence.go",
		old:   `	if consumers == 0 && time.Since(a.since) < bindingTime {`,
		new:   `	if consumers == 0 {`,
		tests: "notify/rabbitmq TestDeclaredQueueIsTrustedWithoutAMonitor",
	},
	{
		name:  "check-dropped-for-any-refusal",
		loses: "After a right to the exchange was missing, events of an absent monitor are lost.",
		file:  "notify/rabbitmq/supervisor.go",
		old:   ` && strings.Contains(reason.Reason, "queue '"+rabbit.Queue+"'")`,
		new:   ` && strings.Contains(reason.Reason, "'")`,
		tests: "notify/rabbitmq TestRefusedExchangeKeepsTheCheck",
	},
	{
		name:  "sender-not-named",
		loses: "Nobody can be bound to a service.",
		file:  "notify/rabbitmq/supervisor.go",
		old:   `r.message.UserId = rabbit.Short(user)`,
		new:   `r.message.UserId = ""`,
		tests: "notify/rabbitmq TestEventsNameTheirSender",
	},
	{
		name:  "replay-of-anybody",
		loses: "A header makes anybody a sender.",
		file:  "cmd/guard-monitor/internal/intake/sender.go",
		old:   ` && d.UserId == own {`,
		new:   ` {`,
		tests: "cmd/guard-monitor/internal/intake TestSendersAreBoundToServices",
	},
}
