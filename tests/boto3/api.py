"""The API of AWS Step Functions as boto3 sees it: every operation, against a server of its own.

    python3 tests/boto3/api.py SLEDGE FUNCTION [TEST...]

SLEDGE is the program, FUNCTION the artifact of tests/e2e/functions/task.c.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

TIME_MAX_S = 60
KEYS = {
    "FULL": ("made-up/secret+for=everything", "default", False),
    "LOOK": ("made-up/secret+for=looking", "default", True),
    "OTHER": ("made-up/secret+for=another+tenant", "other", False),
}
ASK = {
    "Type": "Task",
    "Resource": "fn:task.waitForTaskToken",
    "Parameters": {"token.$": "$$.Task.Token"},
    "HeartbeatSeconds": 600,
    "End": True,
}
INVOKE = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": "task", "Payload.$": "$"},
    "OutputPath": "$.Payload",
    "Retry": [{"ErrorEquals": ["Never"]}],
    "End": True,
}
WORKFLOWS = {
    "ask": ("standard", "Ask", ASK),
    "invoke": ("standard", "Invoke", INVOKE),
    "long": ("standard", "Wait", {"Type": "Wait", "Seconds": 3600, "End": True}),
    "pass": ("standard", "Pass", {"Type": "Pass", "End": True}),
    "quick": ("express", "Invoke", INVOKE),
}
sledge, function = None, None


def machine(name, tenant="default"):
    return f"arn:aws:states:local:{tenant}:stateMachine:{name}"


class Server:
    """A server with workflows, all of it in a folder, from which it starts again."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        workflows = []
        for name, (kind, first, state) in WORKFLOWS.items():
            path = self.folder / f"{name}.json"
            path.write_text(json.dumps({"StartAt": first, "States": {first: state}}))
            workflows.append({"name": name, "path": str(path), "type": kind})
        keys = []
        for key, (secret, tenant, read_only) in KEYS.items():
            path = self.folder / key
            path.write_text(secret)
            path.chmod(0o600)
            keys.append({"id": key, "secret": {"file": str(path)}, "tenant": tenant, "read_only": read_only})
        config = {
            "listen": "127.0.0.1:0",
            "admin": "none",
            "kv": str(self.folder / "kv.redb"),
            "functions": [{"name": "task", "path": function}],
            "workflows": workflows,
            "aws_api": {"listen": "127.0.0.1:0", "keys": keys},
        }
        (self.folder / "sledge.json").write_text(json.dumps(config))
        self.start()

    def start(self):
        command = [sledge, "serve", "--config", str(self.folder / "sledge.json")]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "CACHE_DIRECTORY": str(self.folder / "cache")},
        )
        self.address, lines = None, []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(r"API of AWS Step Functions address=(\S+)", line):
                self.address = found[1]
            if self.address and "listening on" in "".join(lines):
                break
        if not self.address:
            raise RuntimeError("the server does not start:\n" + "".join(lines))
        # What it writes from now on must not stop it.
        self.reader = threading.Thread(target=self.process.stdout.read, daemon=True)
        self.reader.start()

    def end(self, by):
        self.process.send_signal(by)
        self.process.wait(TIME_MAX_S)
        self.reader.join()
        self.process.stdout.close()

    def client(self, key="FULL", **more):
        secret = more.pop("secret", KEYS.get(key, ("none",))[0])
        return boto3.client(
            "stepfunctions",
            endpoint_url=f"http://{self.address}",
            region_name="eu-central-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            # Else the host of StartSyncExecution would be `sync-127.0.0.1`.
            config=Config(inject_host_prefix=False, retries={"max_attempts": 1}),
            **more,
        )


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.server.end(signal.SIGTERM)
        cls.folder.cleanup()

    def setUp(self):
        self.client = self.server.client()

    def until(self, execution, status):
        deadline = time.monotonic() + TIME_MAX_S
        while True:
            described = self.client.describe_execution(executionArn=execution)
            if described["status"] == status:
                return described
            self.assertLess(time.monotonic(), deadline, described)
            time.sleep(0.02)

    def history(self, execution, **more):
        pages = self.client.get_paginator("get_execution_history").paginate(executionArn=execution, **more)
        return [event for page in pages for event in page["events"]]

    def token(self, execution):
        deadline = time.monotonic() + TIME_MAX_S
        while True:
            events = self.history(execution)
            if any(event["type"] == "TaskSubmitted" for event in events):
                scheduled = next(event for event in events if event["type"] == "TaskScheduled")
                return json.loads(scheduled["taskScheduledEventDetails"]["parameters"])["token"]
            self.assertLess(time.monotonic(), deadline, events)
            time.sleep(0.02)

    def refused(self, code, call, **arguments):
        with self.assertRaises(ClientError) as raised:
            call(**arguments)
        self.assertEqual(raised.exception.response["Error"]["Code"], code)

    def test_state_machines(self):
        listed = self.client.list_state_machines()["stateMachines"]
        self.assertEqual([item["name"] for item in listed], sorted(WORKFLOWS))
        pages = self.client.get_paginator("list_state_machines").paginate(PaginationConfig={"PageSize": 2})
        self.assertEqual([len(page["stateMachines"]) for page in pages], [2, 2, 1])
        described = self.client.describe_state_machine(stateMachineArn=machine("quick"))
        self.assertEqual((described["type"], described["status"]), ("EXPRESS", "ACTIVE"))
        self.assertEqual(json.loads(described["definition"])["StartAt"], "Invoke")
        with self.assertRaises(self.client.exceptions.StateMachineDoesNotExist):
            self.client.describe_state_machine(stateMachineArn=machine("absent"))

    def test_execution(self):
        started = self.client.start_execution(stateMachineArn=machine("invoke"), name="one", input='{"a": 1}')
        execution = started["executionArn"]
        self.assertEqual(execution, "arn:aws:states:local:default:execution:invoke:one")
        described = self.until(execution, "SUCCEEDED")
        self.assertEqual(json.loads(described["output"]), {"a": 1})
        self.assertEqual(described["startDate"], started["startDate"])
        self.assertGreaterEqual(described["stopDate"], started["startDate"])
        with self.assertRaises(self.client.exceptions.ExecutionAlreadyExists):
            self.client.start_execution(stateMachineArn=machine("invoke"), name="one", input='{"a": 1}')
        with self.assertRaises(self.client.exceptions.InvalidName):
            self.client.start_execution(stateMachineArn=machine("invoke"), name="a b")
        with self.assertRaises(self.client.exceptions.InvalidExecutionInput):
            self.client.start_execution(stateMachineArn=machine("invoke"), input="{")
        unnamed = self.client.start_execution(stateMachineArn=machine("invoke"))["executionArn"]
        self.assertEqual(self.until(unnamed, "SUCCEEDED")["input"], "{}")
        of = self.client.describe_state_machine_for_execution(executionArn=execution)
        self.assertEqual((of["name"], json.loads(of["definition"])["StartAt"]), ("invoke", "Invoke"))

        types = [
            "ExecutionStarted", "TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSucceeded", "TaskStateExited",
            "ExecutionSucceeded",
        ]
        events = self.history(execution)
        self.assertEqual([event["type"] for event in events], types)
        self.assertEqual(events[2]["taskScheduledEventDetails"]["region"], "local")
        self.assertEqual(self.history(execution, PaginationConfig={"PageSize": 2}), events)
        self.assertEqual(self.history(execution, reverseOrder=True, PaginationConfig={"PageSize": 3}), events[::-1])
        bare = self.history(execution, includeExecutionData=False)
        self.assertNotIn("input", bare[0]["executionStartedEventDetails"])
        self.refused(
            "InvalidToken", self.client.get_execution_history, executionArn=execution, nextToken="nonsense"
        )

    def test_stop(self):
        execution = self.client.start_execution(stateMachineArn=machine("long"), name="stop")["executionArn"]
        self.until(execution, "RUNNING")
        stopped = self.client.stop_execution(executionArn=execution, error="Enough", cause="of it")
        described = self.until(execution, "ABORTED")
        self.assertEqual((described["error"], described["cause"]), ("Enough", "of it"))
        self.assertEqual(described["stopDate"], stopped["stopDate"])
        with self.assertRaises(self.client.exceptions.ExecutionDoesNotExist):
            self.client.stop_execution(executionArn=execution + "x")

    def test_sync(self):
        ended = self.client.start_sync_execution(stateMachineArn=machine("quick"), name="mine", input='"hello"')
        self.assertEqual((ended["status"], ended["output"], ended["name"]), ("SUCCEEDED", '"hello"', "mine"))
        self.assertIn(":express:quick:mine:", ended["executionArn"])
        failed = self.client.start_sync_execution(stateMachineArn=machine("quick"), input='"refuse"')
        self.assertEqual((failed["status"], failed["error"]), ("FAILED", "Refused"))
        self.assertIn("not today", failed["cause"])
        with self.assertRaises(self.client.exceptions.StateMachineTypeNotSupported):
            self.client.start_sync_execution(stateMachineArn=machine("pass"))

    def test_list(self):
        names = [f"n{number}" for number in range(9)]
        for name in names:
            execution = self.client.start_execution(stateMachineArn=machine("pass"), name=name)["executionArn"]
            self.until(execution, "SUCCEEDED")

        def listed(**more):
            pages = self.client.get_paginator("list_executions").paginate(stateMachineArn=machine("pass"), **more)
            return [item["name"] for page in pages for item in page["executions"]]

        self.assertEqual(listed(PaginationConfig={"PageSize": 4}), names[::-1])
        self.assertEqual(listed(statusFilter="SUCCEEDED", redriveFilter="NOT_REDRIVEN"), names[::-1])
        self.assertEqual(listed(statusFilter="RUNNING"), [])

    def test_tasks(self):
        executions = [
            self.client.start_execution(stateMachineArn=machine("ask"), name=name)["executionArn"]
            for name in ["good", "bad", "beyond"]
        ]
        tokens = [self.token(execution) for execution in executions]
        self.client.send_task_heartbeat(taskToken=tokens[0])
        self.client.send_task_success(taskToken=tokens[0], output='{"paid": true}')
        self.assertEqual(json.loads(self.until(executions[0], "SUCCEEDED")["output"]), {"paid": True})
        self.client.send_task_failure(taskToken=tokens[1], error="Refused", cause="no")
        self.assertEqual(self.until(executions[1], "FAILED")["error"], "Refused")
        with self.assertRaises(self.client.exceptions.TaskTimedOut):
            self.client.send_task_success(taskToken=tokens[0], output="1")
        with self.assertRaises(self.client.exceptions.InvalidToken):
            self.client.send_task_success(taskToken="nonsense", output="1")
        with self.assertRaises(self.client.exceptions.InvalidOutput):
            self.client.send_task_success(taskToken=tokens[2], output="{")
        # A server that is killed knows its executions when it is there again.
        self.server.end(signal.SIGKILL)
        self.server.start()
        self.client = self.server.client()
        self.client.send_task_success(taskToken=tokens[2], output="7")
        self.assertEqual(self.until(executions[2], "SUCCEEDED")["output"], "7")

    def test_redrive(self):
        started = self.client.start_execution(stateMachineArn=machine("invoke"), name="flaky", input='"flaky"')
        execution = started["executionArn"]
        self.assertEqual(self.until(execution, "FAILED")["redriveStatus"], "REDRIVABLE")
        first = self.client.redrive_execution(executionArn=execution, clientToken="first")
        again = self.client.redrive_execution(executionArn=execution, clientToken="first")
        self.assertEqual(first["redriveDate"], again["redriveDate"])
        self.assertEqual(self.until(execution, "FAILED")["redriveCount"], 1)
        self.client.redrive_execution(executionArn=execution)
        ended = self.until(execution, "SUCCEEDED")
        self.assertEqual((ended["redriveCount"], ended["redriveStatus"]), (2, "NOT_REDRIVABLE"))
        with self.assertRaises(self.client.exceptions.ExecutionNotRedrivable):
            self.client.redrive_execution(executionArn=execution)

    def test_keys(self):
        looks, other = self.server.client("LOOK"), self.server.client("OTHER")
        self.assertEqual(len(looks.list_state_machines()["stateMachines"]), len(WORKFLOWS))
        self.refused("AccessDeniedException", looks.start_execution, stateMachineArn=machine("pass"))
        self.assertEqual(other.list_state_machines()["stateMachines"], [])
        with self.assertRaises(other.exceptions.StateMachineDoesNotExist):
            other.start_execution(stateMachineArn=machine("pass"))
        self.refused("UnrecognizedClientException", self.server.client("NONE").list_state_machines)
        guesses = self.server.client("FULL", secret="made-up/secret+that=is+wrong")
        self.refused("InvalidSignatureException", guesses.list_state_machines)
        session = self.server.client("FULL", aws_session_token="temporary")
        self.refused("UnrecognizedClientException", session.list_state_machines)
        self.refused(
            "UnknownOperationException", self.client.create_state_machine,
            name="new", definition="{}", roleArn="arn:aws:iam::1:role/r",
        )


if __name__ == "__main__":
    sledge, function = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[3:]])
