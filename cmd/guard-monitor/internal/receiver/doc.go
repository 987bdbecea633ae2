// Package receiver sends alerts to people and programs: to a generic webhook, to
// Alertmanager, and to the chat robots of Slack, DingTalk, Feishu and WeCom.
//
// A receiver sends one notification and reports whether it arrived. Robots answer 200
// also to messages that they refuse, so each kind reads the body of the answer. When,
// how often and what to send is up to the caller.
//
// The address of a robot is its password. No error of this package quotes an
// address, a secret or a token, and no receiver follows a redirect.
//
// The text of an alert comes from events, so from anybody: it is sent as plain text
// where a robot has plain text, and escaped elsewhere.
package receiver
