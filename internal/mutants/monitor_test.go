package mutants

// monitorMutants have guard-monitor lose events, or tell people what is not so.
var monitorMutants = []mutant{
	{
		name:  "acknowledged-before-it-is-stored",
		loses: "A crash of guard-monitor loses the events that it was about to store.",
		file:  "cmd/guard-monitor/internal/intake/consumer.go",
		old:   `ch.Consume(queue, "", false,`,
		new:   `ch.Consume(queue, "", true,`,
		tests: "cmd/guard-monitor/internal/intake TestBrokenBetweenStoreAndAcknowledgement TestRoundTrip",
	},
	{
		name:  "failing-store-rejects",
		loses: "Events that come while the disk is full end as dead letters.",
		file:  "cmd/guard-monitor/internal/intake/reader.go",
		old:   `		if err == nil || errors.Is(err, ErrReject) {`,
		new: `		if err != nil {
			err = errors.Join(ErrReject, err)
		}
		if err == nil || errors.Is(err, ErrReject) {`,
		tests: "cmd/guard-monitor/internal/intake TestFailingHandlerIsCalledAgain",
	},
	{
		name:  "bad-message-dropped",
		loses: "A message that guard-monitor can't read is gone, and nobody can look at it.",
		file:  "cmd/guard-monitor/internal/intake/reader.go",
		old:   `d.Reject(false)`,
		new:   `d.Ack(false)`,
		tests: "cmd/guard-monitor/internal/intake TestWhatIsNoEventGoesToTheDeadLetters",
	},
	{
		name:  "broker-forgets-dead-letters",
		loses: "Dead letters that have no room are dropped.",
		file:  "cmd/guard-monitor/internal/intake/topology.go",
		old:   `amqp.QueueOverflowRejectPublish, // by default it forgets the oldest`,
		new:   `amqp.QueueOverflowDropHead,`,
		tests: "cmd/guard-monitor/internal/intake TestFullDeadLetters",
	},
	{
		name:  "event-counted-twice",
		loses: "An event that is delivered twice is two alert lines and two in the counts.",
		file:  "cmd/guard-monitor/internal/store/insert.go",
		old:   `	if err != nil || n == 0 {`,
		new:   `	if err != nil || n < 0 {`,
		tests: "cmd/guard-monitor/internal/store TestAddSameIDTogether TestAddAndReopen",
	},
	{
		name:  "moved-event-is-counted-twice",
		loses: "An incident counts failures that were found to belong to another.",
		file:  "cmd/guard-monitor/internal/store/move.go",
		old:   `	if from.Valid {`,
		new:   `	if from.Valid && from.String == to.Incident {`,
		tests: "cmd/guard-monitor/internal/store TestMoves",
	},
	{
		name:  "failed-message-counts-as-told",
		loses: "People are never told of an incident whose first message failed.",
		file:  "cmd/guard-monitor/internal/store/told.go",
		old:   ` AND incident_id = i.value AND error = '')`,
		new:   ` AND incident_id = i.value)`,
		tests: "cmd/guard-monitor/internal/store TestLogs",
	},
	{
		name:  "told-before-it-is-sent",
		loses: "People are never told of an incident if guard-monitor dies while it sends.",
		file:  "cmd/guard-monitor/internal/dispatch/courier.go",
		old:   `	failed := c.To.Send(`,
		new: `	if err := c.log(detached, g, time.Now(), nil, 1); err != nil {
		return false, err
	}
	failed := c.To.Send(`,
		tests: "cmd/guard-monitor/internal/dispatch TestRetry",
	},
	{
		name:  "told-again-after-a-restart",
		loses: "Each restart of guard-monitor repeats the alerts of all open incidents.",
		file:  "cmd/guard-monitor/internal/dispatch/courier.go",
		old:   `	return true, c.log(detached, g, now, nil, attempts)`,
		new:   `	return true, nil`,
		tests: "cmd/guard-monitor/internal/dispatch TestRestart",
	},
	{
		name:  "told-again-when-the-store-is-back",
		loses: "While the disk is full each alert is sent once a second.",
		file:  "cmd/guard-monitor/internal/dispatch/courier.go",
		old: `	if err := c.write(ctx, nil); err != nil {
		return err // what was sent must not be sent again
	}`,
		new:   `	_ = c.write(ctx, nil)`,
		tests: "cmd/guard-monitor/internal/dispatch TestStoreFails",
	},
	{
		name:  "short-incident-is-never-told",
		loses: "People are not told of an incident that is over within the group wait.",
		file:  "cmd/guard-monitor/internal/dispatch/plan.go",
		old:   `		return wasShort`,
		new:   `		return nothing`,
		tests: "cmd/guard-monitor/internal/dispatch TestShort TestShortAgain",
	},
	{
		name:  "end-is-never-told",
		loses: "An alert stays open in people's heads after its incident is over.",
		file:  "cmd/guard-monitor/internal/dispatch/plan.go",
		old:   `		return isOver`,
		new:   `		return goesOn`,
		tests: "cmd/guard-monitor/internal/dispatch TestLife",
	},
	{
		name:  "silence-ignored",
		loses: "An incident that somebody has silenced is alerted all the same.",
		file:  "cmd/guard-monitor/internal/dispatch/plan.go",
		old:   `	case i.Silenced() && i.State.Open():`,
		new:   `	case i.Silenced() && i.AckedBy != "":`,
		tests: "cmd/guard-monitor/internal/dispatch TestSilence TestSilenceHasTheEnd",
	},
	{
		name:  "silence-of-everything",
		loses: "A silence of one service silences all of them.",
		file:  "cmd/guard-monitor/internal/incident/silence.go",
		old:   `		if value == nil || m.fits(value(&i)) == m.Negate {`,
		new:   `		if value == nil {`,
		tests: "cmd/guard-monitor/internal/incident TestSilenceMatches",
	},
	{
		name:  "routine-deletion-is-the-cause",
		loses: "Where keys are deleted all the time, each loss is blamed on that for sure.",
		file:  "cmd/guard-monitor/internal/incident/removal.go",
		old:   `e.Kind == watch.Deletion && routine {`,
		new:   `e.Kind == watch.Deletion && usual.Node == "" {`,
		tests: "cmd/guard-monitor/internal/incident TestExplain",
	},
	{
		name:  "routine-deletion-is-certain",
		loses: "Where keys are deleted all the time, each loss is blamed on that for sure.",
		file:  "cmd/guard-monitor/internal/incident/removal.go",
		old:   `best = fault{cause: Deleted, confidence: Low, at: usual.At,`,
		new:   `best = fault{cause: Deleted, confidence: High, at: usual.At,`,
		tests: "cmd/guard-monitor/internal/incident TestExplain",
	},
	{
		name:  "takeover-explains-its-own-grant",
		loses: "A failover is blamed for the loss of a lock that the new master granted.",
		file:  "cmd/guard-monitor/internal/incident/fault.go",
		old:   `		if e.Node != f.Event.Place.Node {`,
		new:   `		if e.Node != "" {`,
		tests: "cmd/guard-monitor/internal/incident TestExplain",
	},
	{
		name:  "bypass-without-a-look",
		loses: "A program is blamed for a bypass while nobody watched Redis.",
		file:  "cmd/guard-monitor/internal/incident/intruder.go",
		old: `	rows = append(rows, health)
	if !healthy {
		return f.unknown(rows...)
	}
	rows = append(rows, Evidence{At: f.Event.CaughtAt, Kind: NoOtherHolder`,
		new: `	rows = append(rows, health)
	if !healthy && f.Watched {
		return f.unknown(rows...)
	}
	rows = append(rows, Evidence{At: f.Event.CaughtAt, Kind: NoOtherHolder`,
		tests: "cmd/guard-monitor/internal/incident TestExplainKnowsItsLimits TestExplain TestUnwatched",
	},
	{
		name:  "rolled-back-holder-is-the-intruder",
		loses: "A holder whose transaction was rolled back is blamed for a row that another wrote.",
		file:  "cmd/guard-monitor/internal/incident/intruder.go",
		old:   `other.Verdict == notify.VerdictDegraded || !wrote ||`,
		new:   `other.Verdict == notify.VerdictDegraded || wrote && other.ID == "" ||`,
		tests: "cmd/guard-monitor/internal/incident TestLateHolder TestExplain TestExplainKnowsItsLimits",
	},
	{
		name:  "incident-of-messages-ends-by-an-older-count",
		loses: "An incident of dead letters ends by a heartbeat that counted before they were there.",
		file:  "cmd/guard-monitor/internal/incident/messages.go",
		old:   `old := m.ReceivedAt.Before(since)`,
		new:   `old := false`,
		tests: "cmd/guard-monitor/internal/incident TestDeadLetters",
	},
	{
		name:  "incident-comes-back-as-a-new-one",
		loses: "A cause that comes back a day later is told as a new incident.",
		file:  "cmd/guard-monitor/internal/incident/desk.go",
		old:   `	case i == nil, !i.State.Open() && d.now.Sub(i.ResolvedAt) > regress:`,
		new:   `	case i == nil, !i.State.Open() && d.now.Sub(i.ResolvedAt) >= 0:`,
		tests: "cmd/guard-monitor/internal/incident TestStates",
	},
	{
		name:  "instance-behind-a-switch-is-no-warning",
		loses: "Nobody is warned of an instance that locks where the locks were before a switch.",
		file:  "cmd/guard-monitor/internal/incident/keeper.go",
		old:   `k.Late = k.Settled`,
		new:   `k.Late = k.Settled && k.Knowing > k.Instances`,
		tests: "cmd/guard-monitor/internal/incident TestKeepers",
	},
	{
		name:  "explained-before-the-facts-are-in",
		loses: "An alert says that the cause is unknown, as Redis was not looked at yet.",
		file:  "cmd/guard-monitor/internal/incident/group.go",
		old:   `age >= t.cfg.Settle ||`,
		new:   `age >= 0 ||`,
		tests: "cmd/guard-monitor/internal/incident TestSettle",
	},
	{
		name:  "silence-while-nobody-listens",
		loses: "Each outage of the broker alerts that all services are silent.",
		file:  "cmd/guard-monitor/internal/incident/listen.go",
		old:   `quietSince(d.heardSince(h.Service), h.ReceivedAt, d.now)) > patience`,
		new:   `h.ReceivedAt) > patience`,
		tests: "cmd/guard-monitor/internal/incident TestSilenceOfTheBroker TestSilenceWhileTheMonitorStoodStill",
	},
	{
		name:  "limited-service-is-silent",
		loses: "A service that sends more heartbeats than it may alerts that it is silent.",
		file:  "cmd/guard-monitor/internal/incident/listen.go",
		old:   `; at.After(d.heardAll) {`,
		new:   `; false && at.After(d.heardAll) {`,
		tests: "cmd/guard-monitor/internal/incident TestLimitedServiceIsNotSilent",
	},
	{
		name:  "sender-without-a-limit",
		loses: "One service fills the store, and the events of the others are deleted first.",
		file:  "cmd/guard-monitor/internal/intake/budget.go",
		old:   `; wait > 0 {`,
		new:   `; wait > time.Hour {`,
		tests: "cmd/guard-monitor/internal/intake TestSenderIsLimited",
	},
	{
		name:  "old-news-undoes-a-takeover",
		loses: "The timeline shows failovers that never were, and causes are made of them.",
		file:  "cmd/guard-monitor/internal/watch/owners.go",
		old:   `			if m.myself || m.epoch >= c.epoch {`,
		new:   `			if m.myself || m.epoch >= 0 {`,
		tests: "cmd/guard-monitor/internal/watch TestOldNews",
	},
	{
		name:  "own-delay-is-a-dead-node",
		loses: "A pause of guard-monitor itself is told as an outage of Redis.",
		file:  "cmd/guard-monitor/internal/watch/compare.go",
		old:   `	case r.blind:`,
		new:   `	case r.blind && r.looks == nil:`,
		tests: "cmd/guard-monitor/internal/watch TestBlindRound",
	},
	{
		name:  "letter-taken-before-its-queue-is-there",
		loses: "A dead letter that is replayed without a queue for it is lost.",
		file:  "cmd/guard-monitor/internal/deadletter/queue.go",
		old:   `	if err := box.requireQueue(); err != nil {`,
		new:   `	if err := ctx.Err(); err != nil {`,
		tests: "cmd/guard-monitor/internal/deadletter TestReplayKeepsALetterWhileTheQueueIsMissing TestReplayUnroutable",
	},
}

// siteMutants open guard-monitor to those who may not.
var siteMutants = []mutant{
	{
		name:  "token-of-metrics-opens-all",
		loses: "Whoever can read the settings of Prometheus may silence alerts.",
		file:  "cmd/guard-monitor/internal/web/auth.go",
		old:   `r.URL.Path == "/livez", metrics && r.URL.Path == "/metrics":`,
		new:   `r.URL.Path == "/livez", metrics:`,
		tests: "cmd/guard-monitor/internal/web TestAuthentication",
	},
	{
		name:  "token-compared-by-prefix",
		loses: "Any token, or none, opens the metrics.",
		file:  "cmd/guard-monitor/internal/web/auth.go",
		old:   `subtle.ConstantTimeCompare(sum[:], a.token[:]) == 1`,
		new:   `subtle.ConstantTimeCompare(sum[:0], a.token[:0]) == 1`,
		tests: "cmd/guard-monitor/internal/web TestAuthentication",
	},
	{
		name:  "host-not-checked",
		loses: "Any web page can read guard-monitor through the browser of someone who can reach it.",
		file:  "cmd/guard-monitor/internal/web/protect.go",
		old:   `		if !known(r.Host, external.Hostname(), h.cfg.AnyAddress) {`,
		new:   `		if r.Host == "" {`,
		tests: "cmd/guard-monitor/internal/web TestHost",
	},
	{
		name:  "guesses-not-counted",
		loses: "Passwords can be guessed without a limit.",
		file:  "cmd/guard-monitor/internal/web/auth.go",
		old:   `		a.attempts.fail(address, name, time.Now())`,
		new:   ``,
		tests: "cmd/guard-monitor/internal/web TestGuessingIsLimited",
	},
	{
		name:  "cache-answers-guesses",
		loses: "Whoever has used up the limit goes on guessing the password of someone who is logged in.",
		file:  "cmd/guard-monitor/internal/web/auth.go",
		old:   `network(address) + "\x00" + name + "\x00" + password`,
		new:   `name + "\x00" + password`,
		tests: "cmd/guard-monitor/internal/web TestGuessingIsLimited",
	},
	{
		name:  "address-of-anybody-s-choice",
		loses: "A header evades the limit of failed logins, and forges audit lines.",
		file:  "cmd/guard-monitor/internal/web/proxied.go",
		old:   `i >= 0 && h.trusts(client)`,
		new:   `i >= 0 && hops[i] != ""`,
		tests: "cmd/guard-monitor/internal/web TestTrustedProxies",
	},
	{
		name:  "writes-of-other-sites",
		loses: "Any web page can acknowledge incidents for someone who is logged in.",
		file:  "cmd/guard-monitor/internal/web/routes.go",
		old:   `	next := cross.Handler(h.readOnly(routes))`,
		new:   `	next := h.readOnly(routes)`,
		tests: "cmd/guard-monitor/internal/web TestCrossOriginWritesAreRefused",
	},
	{
		name:  "read-only-site-writes",
		loses: "Everybody may silence alerts where web.writes is off.",
		file:  "cmd/guard-monitor/internal/web/routes.go",
		old:   `	next := cross.Handler(h.readOnly(routes))`,
		new:   `	next := cross.Handler(routes)`,
		tests: "cmd/guard-monitor/internal/web TestReadOnly",
	},
	{
		name:  "counts-that-waited-are-new",
		loses: "An incident of dead letters is over by a heartbeat that was counted before them.",
		file:  "cmd/guard-monitor/internal/incident/age.go",
		old:   `quietSince(d.heardAll, i.SeenAt, d.now)`,
		new:   `i.SeenAt`,
		tests: "cmd/guard-monitor/internal/incident TestDeadLettersOfAHeartbeatThatWaited",
	},
	{
		name:  "no-count-is-none-left",
		loses: "An incident of dead letters is over because their counts fail.",
		file:  "cmd/guard-monitor/internal/incident/messages.go",
		old: `		known = true
		left := m.Undecided`,
		new: `		known = known || !m.Stale(now)
		left := m.Undecided`,
		tests: "cmd/guard-monitor/internal/incident TestDeadLettersOfCountsThatFailSince",
	},
	{
		name:  "redirect-followed",
		loses: "An alert counts as sent that a redirect turned into a GET elsewhere.",
		file:  "cmd/guard-monitor/internal/receiver/http.go",
		old:   `return http.ErrUseLastResponse`,
		new:   `return nil`,
		tests: "cmd/guard-monitor/internal/receiver TestRedirect",
	},
	{
		name:  "secret-in-an-error",
		loses: "The address of a chat, which is a password, is in the log.",
		file:  "cmd/guard-monitor/internal/receiver/http.go",
		old: `	res, err := r.cfg.Client.Do(req)
	if err != nil {
		return a, withoutURL(err)`,
		new: `	res, err := r.cfg.Client.Do(req)
	if err != nil {
		return a, err`,
		tests: "cmd/guard-monitor/internal/receiver TestSecretsStaySecret",
	},
	{
		name:  "acknowledged-under-any-name",
		loses: "Someone who is logged in may acknowledge in another's name.",
		file:  "cmd/guard-monitor/internal/web/write.go",
		old:   `cmp.Or(user(r.Context()), strings.TrimSpace(given))`,
		new:   `cmp.Or(strings.TrimSpace(given), user(r.Context()))`,
		tests: "cmd/guard-monitor/internal/web TestWritesCarryTheAuthenticatedName",
	},
}
